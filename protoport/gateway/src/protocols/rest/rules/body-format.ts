import type { DescMessage } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { problem, quoteValue } from "../../../protobuf/index.ts";
import { isUtf8, parseMediaType } from "../../../http/index.ts";
import { findProtoField } from "./field-path.ts";
import { isMediaType } from "./http-body.ts";
import type { HttpPattern } from "./http-rule.ts";
import type { BindingOptions } from "./rest-options.ts";

/** The format for the request bodies of a rule. */
export interface BodyFormat {
  /** The kind of a rule's body. An `"ignored"` body is not read. A `"bytes"` body may have any content type. */
  readonly kind: "none" | "ignored" | "json" | "lines" | "bytes";
  /**
   * The format's content types, the preferred type first. A body without a content type is also read in this format,
   * unless {@link requiresContentType} is set.
   */
  readonly contentTypes: readonly string[];
  /** Additional content types for binary protobuf and for indented JSON. */
  readonly otherTypes?: readonly string[];
  /**
   * How a stream with the content type `application/json` is read. `"sequence"` accepts consecutive JSON values, and
   * `"or-array"` also accepts one array of values. If `undefined`, the stream is read as lines.
   */
  readonly jsonValues?: "sequence" | "or-array";
  /** Whether an empty body is refused instead of being read as the default message. */
  readonly isRequired?: true;
  /** Whether a body without a content type is refused, as QUERY requires (RFC 10008 §2). */
  readonly requiresContentType?: true;
}

/** The content type for indented JSON in the documentation of grpc-gateway. */
export const prettyType = "application/json+pretty";

/** The content types that grpc-gateway clients use for binary protobuf. `ProtoMarshaller` sends the last type. */
export const protobufTypes: readonly string[] = [
  "application/x-protobuf",
  "application/protobuf",
  "application/octet-stream",
];

const noBody: BodyFormat = { kind: "none", contentTypes: [] };
const ignoredBody: BodyFormat = { kind: "ignored", contentTypes: [] };
const json: BodyFormat = { kind: "json", contentTypes: ["application/json"] };
// An empty body would be a google.protobuf.Value without a kind, which has no JSON form (struct.proto).
const requiredJson: BodyFormat = { ...json, isRequired: true };
const anyBytes: BodyFormat = { kind: "bytes", contentTypes: ["*/*"] };
// The content type `application/json` is not accepted for lines, because the type means one JSON value.
const lines: BodyFormat = { kind: "lines", contentTypes: ["application/x-ndjson", "application/jsonl"] };
// Clients for grpc-gateway send their streams as `application/json`.
const gatewayLines: BodyFormat = { kind: "lines", contentTypes: [...lines.contentTypes, "application/json"] };

/** The message types with a JSON representation that may be an array. */
const arrayTypes: ReadonlySet<string> = new Set(["google.protobuf.ListValue", "google.protobuf.Value"]);

/** Returns whether a body, which is a message or one field, may be a JSON array. */
function mayBeArray(input: DescMessage, body: string): boolean {
  const field = findProtoField(input, body);
  return field?.fieldKind === "list" || arrayTypes.has((field === undefined ? input : field.message)?.typeName ?? "");
}

/**
 * Returns the format for the request bodies of a rule.
 *
 * @param rule - whether the body is a google.api.HttpBody, whether the client sends a message stream, and whether the
 * RPC is unary
 */
export function bodyFormatOf(
  input: DescMessage,
  { body, httpMethod }: HttpPattern,
  rule: { readonly isRaw: boolean; readonly hasRequestStream: boolean; readonly isUnary: boolean },
  options: BindingOptions,
): BodyFormat {
  const jsonFormat = jsonFormatOf(input, body, rule, options);
  const otherTypes = rule.isUnary && jsonFormat.kind === "json" ? otherTypesOf(input, body, options) : [];
  const format = otherTypes.length === 0 ? jsonFormat : { ...jsonFormat, otherTypes };
  return httpMethod === "QUERY" && body !== "" ? { ...format, requiresContentType: true } : format;
}

function otherTypesOf(input: DescMessage, body: string, options: BindingOptions): readonly string[] {
  const acceptsProtobuf = options.protobufBodies && isProtobufBody(input, body);
  return [...(options.prettyJson ? [prettyType] : []), ...(acceptsProtobuf ? protobufTypes : [])];
}

/** Returns whether a body is a message. Only messages have a binary format. */
function isProtobufBody(input: DescMessage, body: string): boolean {
  const field = findProtoField(input, body);
  return body === "*" || (field?.fieldKind === "message" && !field.delimitedEncoding);
}

/** Returns whether a content type is for binary protobuf, and the rule accepts binary bodies. */
export function isProtobuf({ otherTypes }: BodyFormat, contentType: string | null): boolean {
  if (otherTypes === undefined || contentType === null) return false;
  const type = parseMediaType(contentType)?.type ?? "";
  return otherTypes.includes(type) && protobufTypes.includes(type);
}

function jsonFormatOf(
  input: DescMessage,
  body: string,
  rule: { readonly isRaw: boolean; readonly hasRequestStream: boolean },
  options: BindingOptions,
): BodyFormat {
  if (body === "") return options.ignoreBodies ? ignoredBody : noBody;
  if (rule.isRaw) return anyBytes;
  if (!rule.hasRequestStream) return body === "*" && input.typeName === "google.protobuf.Value" ? requiredJson : json;
  if (options.jsonClientStreams) {
    return { ...gatewayLines, jsonValues: mayBeArray(input, body) ? "sequence" : "or-array" };
  }
  return options.streamInResults ? gatewayLines : lines;
}

/**
 * Returns an error if the rule accepts no body with this content type, or otherwise `undefined`.
 *
 * @param isEmpty - whether the body is empty, so that only the format for bytes checks the content type
 */
export function bodyProblem(
  format: BodyFormat,
  contentType: string | null,
  isEmpty: boolean,
): ConnectError | undefined {
  if (contentType === null && !isEmpty && format.requiresContentType) {
    return problem("ERR_CONTENT_TYPE", "the content type is missing");
  }
  if (format.kind === "bytes") {
    if (contentType === null) return undefined;
    if (!isMediaType(contentType)) {
      const gotType = quoteValue(contentType);
      return problem("ERR_CONTENT_TYPE", `Content-Type must be a media type such as image/png, got ${gotType}`);
    }
    return isMultipartForm(contentType) ? problem("ERR_CONTENT_TYPE", multipartRefused) : undefined;
  }
  if (isEmpty || format.kind === "ignored") return undefined;
  if (format.kind === "none")
    return problem("ERR_BODY_UNEXPECTED", "this operation does not accept a body", { option: "ignoreBodies" });
  if (contentType === null || contentType === format.contentTypes[0] || isOfFormat(format, contentType)) return;
  const others = format.otherTypes === undefined ? "" : `${format.otherTypes.join(", ")} or `;
  const expected = others + format.contentTypes.join(" or ");
  const hint = format.kind === "json" ? curlHint(contentType) : "";
  const option = format === lines && isOfFormat(json, contentType) ? "jsonClientStreams" : undefined;
  const message = `the content type must be ${expected} in UTF-8, got ${quoteValue(contentType)}${hint}`;
  return problem("ERR_CONTENT_TYPE", message, { option });
}

// Browsers and `curl -F` send forms as multipart/form-data (RFC 7578). A handler that expects a file's bytes would also
// store the boundaries between the form's parts.
function isMultipartForm(contentType: string): boolean {
  return /^multipart\/form-data[\t ]*(?:;|$)/i.test(contentType);
}

const multipartRefused =
  "the content type must not be multipart/form-data; send the bytes alone, with curl --data-binary";

/** Returns a hint for users of `curl -d`. The option `-d` labels any data as a form. */
export function curlHint(contentType: string): string {
  return /^application\/x-www-form-urlencoded\b/i.test(contentType) ? "; with curl, use --json to send JSON" : "";
}

function isOfFormat({ kind, contentTypes, otherTypes }: BodyFormat, contentType: string): boolean {
  const media = parseMediaType(contentType);
  // JSON ignores parameters other than charset (RFC 8259 §11).
  if (media === undefined || !isUtf8(media)) return false;
  // A content type that ends in `+json` is JSON, too (RFC 6839 §3.1).
  return (
    contentTypes.includes(media.type) ||
    otherTypes?.includes(media.type) === true ||
    (kind === "json" && media.type.endsWith("+json"))
  );
}
