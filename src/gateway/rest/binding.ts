/**
 * Which message is this URL? One HTTP pattern of one RPC, compiled once: body, path and query of a request to
 * the message, and the message of the response to a body.
 */
import type { DescMethod, DescMethodUnary, Message } from "@bufbuild/protobuf";
import { fieldsOf } from "../json/field-store.ts";
import type { ReadJsonOptions, WriteJsonOptions } from "../json/index.ts";
import type { HttpPattern } from "./http-rule.ts";
import { parsePathTemplate } from "./parse-path-template.ts";
import type { PathTemplate } from "./path-template.ts";
import { compilePathVariables } from "./path-variables.ts";
import { readQuery } from "./query.ts";
import type { RequestBody } from "./request-body.ts";
import { createBodyReader, forbidInQuery } from "./request-body.ts";
import type { RestResponse } from "./response-body.ts";
import { createResponseWriter } from "./response-body.ts";

/** What a request brings to a binding, once its path has matched. */
export interface RestRequest extends RequestBody {
  /** The values of the path template's variables, as the route table captured them. */
  readonly captures: readonly string[];
  /** The raw text behind the question mark; `""` when there is none. */
  readonly query: string;
}

/** Says which parts of a request a lenient binding has ignored. */
export type OnIgnored = (method: DescMethod, names: readonly string[]) => void;

/** How bindings read and write; the same for all bindings of a service. */
export interface BindingOptions {
  /** The status of an answer of type google.protobuf.Empty: 200 with `{}`, or 204 without a body. */
  readonly emptyResponse: 200 | 204;
  /** How JSON bodies are read; unknown fields are ignored where `lenient`. */
  readonly readJson: ReadJsonOptions;
  readonly writeJson: WriteJsonOptions;
  /** Ignores unknown query parameters and JSON fields instead of refusing them. */
  readonly lenient: boolean;
  readonly onIgnored: OnIgnored | undefined;
}

/** One HTTP pattern of one unary RPC. */
export interface RestBinding {
  readonly method: DescMethodUnary;
  /** `/package.Service/Method`. */
  readonly procedure: string;
  readonly pattern: HttpPattern;
  readonly template: PathTemplate;
  /**
   * Makes the request message.
   *
   * @throws ConnectError `InvalidArgument` whose message names the field; its HTTP status is 415 where the
   * content type is at fault
   */
  decode(request: RestRequest): Message;
  /**
   * Makes the answer.
   *
   * @throws Error when the message cannot be written as JSON, which is the handler's fault
   */
  encode(message: Message): RestResponse;
}

/**
 * Compiles a pattern for an RPC.
 *
 * @throws Error when the template does not parse, or a field it names is not there or cannot be used so
 */
export function compileBinding(method: DescMethodUnary, pattern: HttpPattern, options: BindingOptions): RestBinding {
  const { input } = method;
  const template = parsePathTemplate(pattern.pathTemplate);
  const variables = compilePathVariables(input, template);
  const readBody = createBodyReader(input, pattern.body, variables.fields, options.readJson);
  const forbidden = forbidInQuery(input, pattern.body, variables.fields);
  const queryBinding = { message: input, forbidden, lenient: options.lenient };
  return {
    method,
    procedure: `/${method.parent.typeName}/${method.name}`,
    pattern,
    template,
    encode: createResponseWriter(method, pattern.responseBody, options),
    decode(request) {
      const { message, ignored } = readBody(request);
      const fields = fieldsOf(message);
      variables.set(fields, request.captures);
      const unknown = request.query === "" ? nothing : readQuery(queryBinding, request.query, fields);
      if (ignored.length + unknown.length > 0) options.onIgnored?.(method, [...unknown, ...ignored]);
      return message;
    },
  };
}

const nothing: readonly string[] = [];
