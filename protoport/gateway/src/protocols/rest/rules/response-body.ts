import type { DescMessage, Message } from "@bufbuild/protobuf";
import { toUtf8, toShortLine } from "../../../http/index.ts";
import { createJsonFieldWriter, createJsonMessageWriter } from "../../../protobuf/index.ts";
import { findProtoField } from "./field-path.ts";
import type { BindingOptions } from "./rest-options.ts";
import { UnknownFieldProblem } from "./rule-problem.ts";

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
export function prepareResponse(
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
export function createJsonWriter(
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
export function jsonResponse(json: string, contentType: string): RestResponse {
  return { httpStatus: 200, contentType, body: toUtf8(json) };
}
