/** Compiles an RPC's HTTP patterns to bindings, which convert requests to messages, and messages to responses. */

import type { DescMessage, DescMethod, Message } from "@bufbuild/protobuf";
import { toShortLine, toUtf8 } from "../../../http/index.ts";
import { type BoundFields, createJsonFieldWriter, createJsonMessageWriter } from "../../../protobuf/index.ts";
import { findProtoField } from "./field-path.ts";
import { createFieldSelector, type SelectFields } from "./field-selection.ts";
import { createRawBodyReader, type RawBody } from "./http-body.ts";
import { type HttpPattern, procedureOf, UnknownFieldProblem } from "./http-rule.ts";
import { parsePathTemplate, type PathTemplate } from "./path-template.ts";
import { compilePathVariables } from "./path-variables.ts";
import { createRequestReader, type RequestReader } from "./request-reader.ts";
import type { BindingOptions } from "./rest-options.ts";

/** One HTTP pattern for one RPC. */
export interface RestBinding extends RequestReader {
  readonly method: DescMethod;
  /** `/package.Service/Method`. */
  readonly procedure: string;
  readonly pattern: HttpPattern;
  readonly template: PathTemplate;
  /** The request fields that the path sets. */
  readonly boundByPath: BoundFields;
  /** The response for a message type without fields, such as google.protobuf.Empty, or `undefined` for other types. */
  readonly preparedResponse: RestResponse | undefined;
  /**
   * Reads from the query and `X-Goog-FieldMask` which response fields a request selects. Returns `undefined` if all
   * fields are selected. Missing if requests cannot select fields.
   *
   * @throws ConnectError `InvalidArgument` for a selection that is not valid
   */
  readonly selectFields: ((query: string, fieldMask: string | null) => SelectFields | undefined) | undefined;
  /**
   * Writes a message, or the selected fields of a message, as the response.
   *
   * @throws Error if the message cannot be written as JSON, which is the handler's mistake
   */
  encode(message: Message, select?: SelectFields): RestResponse;
  /** Returns a response's google.api.HttpBody. `undefined` for JSON responses. Throws the same errors as `encode`. */
  readonly toRaw: ((message: Message) => RawBody) | undefined;
  /** Writes a stream message as JSON. Throws the same errors as {@link encode}. */
  toJson(message: Message): string;
  /** The options of the RPC's service. */
  readonly options: BindingOptions;
  /** Whether bodies may be in the binary protobuf format. */
  readonly acceptsProtobuf: boolean;
  /** Whether clients may ask for indented JSON. */
  readonly hasPrettyJson: boolean;
}

/** Returns whether an RPC's response is a message stream. */
export function hasResponseStream({ methodKind }: DescMethod): boolean {
  return methodKind === "server_streaming" || methodKind === "bidi_streaming";
}

/**
 * Compiles an RPC's pattern.
 *
 * @throws Error if the template is not valid, if a path cannot set a field in the template, or if the pattern cannot be
 * applied to a message stream
 */
export function compileBinding(method: DescMethod, pattern: HttpPattern, options: BindingOptions): RestBinding {
  const { input, output } = method;
  const template = parsePathTemplate(pattern.pathTemplate);
  const variables = compilePathVariables(input, template);
  const preparedResponse = prepareResponse(output, pattern.responseBody, options);
  const toRaw = createRawBodyReader(output, pattern.responseBody);
  const toJson = createJsonWriter(output, pattern.responseBody, options);
  const isSingle = toRaw === undefined && method.methodKind === "unary";
  return {
    ...createRequestReader(method, pattern, variables, options),
    method,
    procedure: procedureOf(method),
    pattern,
    template,
    boundByPath: variables.boundFields,
    preparedResponse,
    options,
    acceptsProtobuf: options.protobufBodies && isSingle,
    hasPrettyJson: options.prettyJson && isSingle,
    toJson,
    toRaw,
    selectFields:
      options.partialResponses && toRaw === undefined
        ? createFieldSelector(input, output, pattern.responseBody, options.writeJson)
        : undefined,
    encode: (message, select) => {
      if (toRaw !== undefined) return { httpStatus: 200, ...toRaw(message) };
      if (preparedResponse !== undefined) return preparedResponse;
      const json = toJson(message);
      return jsonResponse(select === undefined ? json : select(json), options.contentType);
    },
  };
}

/** The response to a successful request. */
export interface RestResponse {
  readonly httpStatus: number;
  /** The body's content type, or `undefined` if there is no body. */
  readonly contentType: string | undefined;
  /** The body, or `undefined` if the status is 204, which allows none. */
  readonly body: Uint8Array | undefined;
}

const noContent: RestResponse = { httpStatus: 204, contentType: undefined, body: undefined };

/** Returns the response for a message type without fields and extensions, or `undefined` for other types. */
function prepareResponse(
  output: DescMessage,
  responseBody: string,
  { emptyResponse, contentType }: BindingOptions,
): RestResponse | undefined {
  if (responseBody !== "" || output.fields.length > 0 || output.proto.extensionRange.length > 0) return undefined;
  return output.typeName === "google.protobuf.Empty" && emptyResponse === 204
    ? noContent
    : jsonResponse("{}", contentType);
}

/**
 * Creates the function that writes a response message, or one field of the message, as JSON.
 *
 * @param responseBody - the field that is the body; `""` for the complete message
 * @throws RuleProblem if the response has no field `responseBody`
 */
function createJsonWriter(
  output: DescMessage,
  responseBody: string,
  { writeJson: options }: BindingOptions,
): (message: Message) => string {
  if (responseBody === "") return createJsonMessageWriter(output, options);
  const field = findProtoField(output, responseBody);
  if (field === undefined)
    throw new UnknownFieldProblem(`response_body "${toShortLine(responseBody)}" is not a field of ${output.typeName}`);
  // A message writer would omit a field with the default value, but a response body must be a JSON value.
  return createJsonFieldWriter(field, options);
}

/** Returns a successful response with a JSON body. */
function jsonResponse(json: string, contentType: string): RestResponse {
  return { httpStatus: 200, contentType, body: toUtf8(json) };
}
