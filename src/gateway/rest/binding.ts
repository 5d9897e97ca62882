/**
 * Which message is this URL? One HTTP pattern of one RPC, compiled once: path, query and body of a request
 * to the message, and the message of the response to a body.
 */
import type { DescField, DescMessage, DescMethod, DescMethodUnary, Message } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { FieldProblem } from "../json/field-problem.ts";
import { fieldsOf } from "../json/field-store.ts";
import type { ForbiddenFields } from "../json/read-context.ts";
import type { ReadJsonOptions } from "../json/read-json.ts";
import { readJsonField, readJsonReport } from "../json/read-json.ts";
import type { WriteJsonOptions } from "../json/write-json.ts";
import { isJsonContentType } from "./content-type.ts";
import type { FieldPath, FieldSetter } from "./field-path.ts";
import { createFieldSetter, findField, leafOf, printFieldPath, resolveFieldPath } from "./field-path.ts";
import type { HttpPattern } from "./http-rule.ts";
import { errorWithHttpStatus } from "./http-status.ts";
import { parsePathTemplate } from "./parse-path-template.ts";
import type { PathTemplate } from "./path-template.ts";
import { readQuery } from "./query.ts";
import type { RestResponse } from "./response-body.ts";
import { createResponseWriter } from "./response-body.ts";
import type { TextParser } from "./text-value.ts";
import { createTextParser } from "./text-value.ts";

/** What a request brings to a binding, once its path has matched. */
export interface RestRequest {
  /** The values of the path template's variables, as the route table captured them. */
  readonly captures: readonly string[];
  /** The raw text behind the question mark; `""` when there is none. */
  readonly query: string;
  /** The value of the header `Content-Type`; `null` when there is none. */
  readonly contentType: string | null;
  /** The whole body, with content encodings undone; empty when there is none. */
  readonly body: Uint8Array;
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

interface PathBinding {
  readonly name: string;
  readonly parse: TextParser;
  readonly set: FieldSetter;
  readonly path: FieldPath;
}

type ReadBody = (request: RestRequest) => { readonly message: Message; readonly ignored: readonly string[] };

/**
 * Compiles a pattern for an RPC.
 *
 * @throws Error when the template does not parse, or a field it names is not there or cannot be used so
 */
export function compileBinding(method: DescMethodUnary, pattern: HttpPattern, options: BindingOptions): RestBinding {
  const template = parsePathTemplate(pattern.pathTemplate);
  const variables = template.variables.map((variable) => bindVariable(method.input, variable.fieldPath));
  const pathFields = forbid(variables.map((variable) => variable.path));
  const readBody = createBodyReader(method, pattern.body, pathFields, options);
  const queryBinding = {
    message: method.input,
    forbidden: forbidBody(method.input, pattern.body, pathFields),
    lenient: options.lenient,
  };
  const encode = createResponseWriter(method, pattern.responseBody, options);
  return {
    method,
    procedure: `/${method.parent.typeName}/${method.name}`,
    pattern,
    template,
    encode,
    decode(request) {
      const { message, ignored } = readBody(request);
      const fields = fieldsOf(message);
      for (let at = 0; at < variables.length; at++) {
        const variable = variables[at];
        if (variable !== undefined) setVariable(variable, fields, request.captures[at] ?? "");
      }
      const unknown = request.query === "" ? [] : readQuery(queryBinding, request.query, fields);
      if (ignored.length + unknown.length > 0) options.onIgnored?.(method, [...unknown, ...ignored]);
      return message;
    },
  };
}

function setVariable(variable: PathBinding, fields: ReturnType<typeof fieldsOf>, text: string): void {
  try {
    variable.set(fields, variable.parse(text));
  } catch (error) {
    if (!(error instanceof FieldProblem)) throw error;
    throw new ConnectError(`${variable.name}: ${error.message}`, Code.InvalidArgument);
  }
}

function bindVariable(input: DescMessage, fieldPath: readonly string[]): PathBinding {
  const name = fieldPath.join(".");
  const path = resolveFieldPath(input, fieldPath);
  if (path === undefined) throw new Error(`path variable "${name}" is no field of ${input.typeName}`);
  const leaf = leafOf(path);
  const parse = leaf.fieldKind === "list" ? undefined : createTextParser(leaf);
  if (parse === undefined) throw new Error(`path variable "${name}" is repeated, a map or a message`);
  return { name: printFieldPath(path), parse, set: createFieldSetter(path), path };
}

function createBodyReader(
  method: DescMethodUnary,
  body: string,
  pathFields: ForbiddenFields,
  options: BindingOptions,
): ReadBody {
  const { input } = method;
  if (body === "") return (request) => readNoBody(input, request);
  if (body === "*") {
    return (request) =>
      hasBody(request)
        ? readJsonReport(input, request.body, options.readJson, pathFields)
        : { message: create(input), ignored: [] };
  }
  const field = bindBody(input, body);
  const bound = pathFields.get(field);
  if (bound === true) throw new Error(`body "${body}" is a field that the path binds`);
  return (request) => {
    const message = create(input);
    const ignored = hasBody(request) ? readJsonField(field, message, request.body, options.readJson, bound) : [];
    return { message, ignored };
  };
}

// Zero bytes are no body, whatever the content type says.
function hasBody(request: RestRequest): boolean {
  if (request.body.byteLength === 0) return false;
  if (isJsonContentType(request.contentType)) return true;
  // RFC 9110 §15.5.16.
  throw errorWithHttpStatus("the content type is not application/json in UTF-8", Code.InvalidArgument, 415);
}

const nothingIgnored: readonly string[] = [];

function readNoBody(input: DescMessage, request: RestRequest): ReturnType<ReadBody> {
  if (request.body.byteLength > 0) throw new ConnectError("this operation takes no body", Code.InvalidArgument);
  return { message: create(input), ignored: nothingIgnored };
}

function bindBody(input: DescMessage, body: string): DescField {
  const field = findField(input, body);
  if (field === undefined) throw new Error(`body "${body}" is no field of ${input.typeName}`);
  return field;
}

function forbidBody(input: DescMessage, body: string, pathFields: ForbiddenFields): ForbiddenFields {
  if (body === "") return pathFields;
  // With body "*" all that the path does not bind is the body's, and nothing is left for the query.
  if (body === "*") return new Map(input.fields.map((field) => [field, true]));
  return new Map([...pathFields, [bindBody(input, body), true]]);
}

function forbid(paths: readonly FieldPath[]): ForbiddenFields {
  const byFirst = Map.groupBy(paths, (path) => path[0]);
  const forbidden = new Map<DescField, true | ForbiddenFields>();
  for (const [first, group] of byFirst) {
    const below = group.map(([, second, ...rest]): FieldPath | undefined => second && [second, ...rest]);
    const deeper = below.filter((path) => path !== undefined);
    forbidden.set(first, deeper.length < group.length ? true : forbid(deeper));
  }
  return forbidden;
}
