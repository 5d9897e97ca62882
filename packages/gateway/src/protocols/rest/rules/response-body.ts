import type { DescMessage, Message } from "@bufbuild/protobuf";
import { toUtf8 } from "../../../exchange/index.ts";
import { createJsonFieldWriter, createJsonMessageWriter } from "../../../messages/json/index.ts";
import { findProtoField } from "./field-path.ts";
import type { BindingOptions } from "./rest-options.ts";
import { RuleProblem } from "./rule-problem.ts";

/** The answer to a request that succeeded. */
export interface RestResponse {
  readonly httpStatus: number;
  /** `undefined` when there is no body. */
  readonly contentType: string | undefined;
  /** `undefined` when there is none: a 204. */
  readonly body: Uint8Array | undefined;
}

const contentType = "application/json";
const noContent: RestResponse = { httpStatus: 204, contentType: undefined, body: undefined };

/**
 * Returns the answer of an RPC whose response message has neither fields nor extensions; `undefined` for all others.
 *
 * @param responseBody - the field that is the body; `""` for the whole message
 */
export function prepareResponse(
  output: DescMessage,
  responseBody: string,
  { emptyResponse }: BindingOptions,
): RestResponse | undefined {
  if (responseBody !== "" || output.fields.length > 0 || output.proto.extensionRange.length > 0) return undefined;
  return output.typeName === "google.protobuf.Empty" && emptyResponse === 204 ? noContent : jsonResponse("{}");
}

/**
 * Creates the function that writes a response message, or the field of it that is the body, as JSON.
 *
 * @param responseBody - the field that is the body; `""` for the whole message
 * @throws RuleProblem when the response has no such field
 */
export function createJsonWriter(
  output: DescMessage,
  responseBody: string,
  { writeJson: options }: BindingOptions,
): (message: Message) => string {
  if (responseBody === "") return createJsonMessageWriter(output, options);
  const field = findProtoField(output, responseBody);
  if (field === undefined)
    throw new RuleProblem(`response_body "${responseBody}" is not a field of ${output.typeName}`);
  // JSON leaves out fields that are zero, but a whole body has to be something.
  return createJsonFieldWriter(field, options);
}

/** Returns the answer of a call that succeeded with this JSON. */
export function jsonResponse(json: string): RestResponse {
  return { httpStatus: 200, contentType, body: toUtf8(json) };
}
