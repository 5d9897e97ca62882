/** One HTTP pattern of one RPC, compiled once: turns requests into messages, and response messages into answers. */
import type { DescMethod, DescMethodServerStreaming, DescMethodUnary, Message } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { type BoundFields, hasRequiredFields, type ReadJsonOptions, requireFields } from "../json/index.ts";
import { type BodyNotesOptions, createBodyNotes } from "./body-notes.ts";
import { createRawFinder, type RawBody } from "./http-body.ts";
import type { HttpPattern } from "./http-rule.ts";
import { parsePathTemplate } from "./parse-path-template.ts";
import type { PathTemplate } from "./path-template.ts";
import { compilePathVariables } from "./path-variables.ts";
import { readQuery } from "./query.ts";
import type { RequestBody } from "./request-body.ts";
import { bindBody, bodyProblem, createBodyReader } from "./request-body.ts";
import type { ResponseOptions, RestResponse } from "./response-body.ts";
import { createJsonWriter, ok, prepareResponse } from "./response-body.ts";

/** The parts of a request that a binding reads. */
export interface RestRequest extends RequestBody {
  /** The values of the path template's variables, from the route table. */
  readonly captures: readonly string[];
  /** The raw text after the question mark; `""` when there is none. */
  readonly query: string;
}

/** Reports what a lenient binding has ignored: up to 16 names each from the query and the body, and the count of all. */
export type OnIgnored = (method: DescMethod, names: readonly string[], count: number) => void;

/** Options of {@link compileBinding}; the same for all bindings of a service. */
export interface BindingOptions extends BodyNotesOptions, ResponseOptions {
  /** How JSON bodies are read; unknown fields are ignored where `lenient`. */
  readonly readJson: ReadJsonOptions;
  /** Ignores unknown query parameters and JSON fields instead of refusing them. */
  readonly lenient: boolean;
  /** Wraps the messages and the error of a stream as grpc-gateway does. */
  readonly streamInResults: boolean;
  readonly onIgnored: OnIgnored | undefined;
}

/** An RPC that a rule can bind: one whose request is a single message. */
export type BoundMethod = DescMethodUnary | DescMethodServerStreaming;

/** One HTTP pattern of one RPC. */
export interface RestBinding {
  readonly method: BoundMethod;
  /** `/package.Service/Method`. */
  readonly procedure: string;
  readonly pattern: HttpPattern;
  readonly template: PathTemplate;
  /** The fields of the request message that the path sets. */
  readonly boundByPath: BoundFields;
  /** The fields that the path or the body may set; the query sets none of them. */
  readonly boundByPathOrBody: BoundFields;
  /**
   * Reads the request message.
   *
   * @throws ConnectError `InvalidArgument` whose message names the field, or whose HTTP status is 415 if the content
   * type is wrong
   */
  decode(request: RestRequest): Message;
  /** Returns why every body of this content type is refused, which is known before it arrives. */
  bodyProblem(contentType: string | null): ConnectError | undefined;
  /** The answer, if every message has the same: its type has no fields, as google.protobuf.Empty has none. */
  readonly preparedResponse: RestResponse | undefined;
  /**
   * Writes the answer.
   *
   * @throws Error when the message cannot be written as JSON, which is the handler's fault
   */
  encode(message: Message): RestResponse;
  /** Returns the google.api.HttpBody that is the answer, if the rule has one; throws as {@link encode} does. */
  readonly toRaw: ((message: Message) => RawBody) | undefined;
  /** Writes a message of a stream as JSON; throws as {@link encode} does. */
  toJson(message: Message): string;
  /** Whether the messages and the error of a stream are wrapped as in grpc-gateway. */
  readonly streamInResults: boolean;
}

/**
 * Compiles a pattern of an RPC.
 *
 * @throws Error when the template does not parse, or names a field that does not exist or cannot be in a path
 */
export function compileBinding(method: BoundMethod, pattern: HttpPattern, options: BindingOptions): RestBinding {
  const { input } = method;
  const template = parsePathTemplate(pattern.pathTemplate);
  const variables = compilePathVariables(input, template);
  const boundByPath = variables.boundFields;
  const readBody = createBodyReader(input, pattern.body, boundByPath, options.readJson);
  const boundByPathOrBody = bindBody(input, pattern.body, boundByPath);
  const bodyNotes = createBodyNotes(input, pattern, options);
  const queryBinding = { message: input, boundFields: boundByPathOrBody, lenient: options.lenient };
  const mayLackFields = hasRequiredFields(input);
  const preparedResponse = prepareResponse(method.output, pattern.responseBody, options);
  const toRaw = createRawFinder(method.output, pattern.responseBody);
  const toJson = createJsonWriter(method.output, pattern.responseBody, options);
  return {
    method,
    procedure: `/${method.parent.typeName}/${method.name}`,
    pattern,
    template,
    boundByPath,
    boundByPathOrBody,
    bodyProblem: (contentType) => bodyProblem(input, pattern.body, contentType),
    preparedResponse,
    streamInResults: options.streamInResults,
    toJson,
    toRaw,
    encode: (message) => {
      if (toRaw !== undefined) return { httpStatus: 200, ...toRaw(message) };
      return preparedResponse ?? ok(toJson(message));
    },
    decode(request) {
      const notes = bodyNotes?.open();
      // An empty body counts as none, whatever the content type says.
      const read = request.body.byteLength === 0 ? undefined : readBody(request, notes);
      const message = read?.message ?? create(input);
      variables.set(message, request.captures);
      const unknown = request.query === "" ? undefined : readQuery(queryBinding, request.query, message);
      if (notes !== undefined) bodyNotes?.settle(notes, message);
      if (mayLackFields) requireFields(input, message);
      const ignored = read?.ignored;
      const count = (unknown?.count ?? 0) + (ignored?.count ?? 0);
      if (count > 0) options.onIgnored?.(method, [...(unknown?.names ?? []), ...(ignored?.names ?? [])], count);
      return message;
    },
  };
}
