import type { Message } from "@bufbuild/protobuf";
import { create, type DescField } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { readJsonExactly, type ReadJsonOptions } from "@protoport/gateway/messages";
import { createRawReader, findProtoField } from "@protoport/gateway/rest";
import { isJsonType, unexpectedTypeError } from "./response-body.ts";
import type { RestClientRule } from "./rest-rule.ts";

/** Reads the messages in responses to requests with one rule. */
export interface ResponseReader {
  /** Function that creates a google.api.HttpBody from bytes and a content type. `undefined` if responses are JSON. */
  readonly readRaw: ((bytes: Uint8Array, contentType: string) => Message) | undefined;
  /**
   * Reads a message from JSON. With `response_body`, the JSON is the value of one field. @throws ConnectError
   * `Internal` for invalid JSON
   */
  readJson(json: Uint8Array | string): Message;
  /**
   * Reads a response body.
   *
   * @throws ConnectError `Internal` for a missing body, `Unknown` for an unexpected content type
   */
  readBody(bytes: Uint8Array, response: Response): Message;
}

/**
 * Creates the reader for a rule's responses.
 *
 * @throws ConnectError `Internal` if the response message does not have the field `response_body`
 */
export function createResponseReader(
  { method, pattern, httpMethod }: RestClientRule,
  options: ReadJsonOptions,
): ResponseReader {
  const { output } = method;
  const { responseBody } = pattern;
  const field = findProtoField(output, responseBody);
  if (responseBody !== "" && field === undefined) {
    throw new ConnectError(`response_body "${responseBody}" is not a field of ${output.typeName}`, Code.Internal);
  }
  const fill = createRawReader(output, responseBody === "" ? "*" : responseBody);
  const readRaw = fill && ((body: Uint8Array, contentType: string) => fill({ body, contentType }));
  const readJson = (json: Uint8Array | string): Message => {
    try {
      return readJsonExactly(output, field, json, options);
    } catch (error) {
      const problem = error instanceof ConnectError ? error.rawMessage : String(error);
      const message = `the response is not a valid ${output.typeName}: ${problem}`;
      throw new ConnectError(message, Code.Internal, undefined, undefined, error);
    }
  };
  return {
    readRaw,
    readJson,
    readBody(bytes, { headers, status }) {
      if (readRaw !== undefined) return readRaw(bytes, headers.get("content-type") ?? "");
      if (bytes.byteLength > 0) {
        if (!isJsonType(headers)) throw unexpectedTypeError(headers, "application/json");
        return readJson(bytes);
      }
      // A response to HEAD has no body (RFC 9110 §9.3.2). For other methods, an empty body is an empty message, which
      // is accepted unless a field is required.
      if (httpMethod === "HEAD" || !output.fields.some(hasRequiredPresence)) return create(output);
      const reason = `has no body, and ${output.typeName} has required fields`;
      throw new ConnectError(`the response with HTTP status ${status} ${reason}`, Code.Internal);
    },
  };
}

// A required field is `required` in proto2, and has LEGACY_REQUIRED in editions.
function hasRequiredPresence({ presence }: DescField): boolean {
  return presence === FeatureSet_FieldPresence.LEGACY_REQUIRED;
}
