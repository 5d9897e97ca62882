import { create, type DescField, type DescMessage, isMessage, type Message } from "@bufbuild/protobuf";
import { createFieldSetter, loadField } from "../../../protobuf/index.ts";
import { findProtoField } from "./field-path.ts";

/** A google.api.HttpBody message. The bytes in `data` are sent over HTTP unchanged, with the message's content type. */
interface HttpBody extends Message<"google.api.HttpBody"> {
  contentType: string;
  data: Uint8Array;
}

// Message types are compared by name, because every service generates a separate descriptor.
const httpBodyName = "google.api.HttpBody";

/** Returns whether a type is google.api.HttpBody. */
export function isHttpBodyType(type: DescMessage | undefined): boolean {
  return type?.typeName === httpBodyName;
}

type HttpBodyField = DescField & { readonly fieldKind: "message"; readonly message: DescMessage };

/** Returns the field with the HttpBody, `"message"` if the message is an HttpBody, or otherwise `undefined`. */
function locateHttpBody(desc: DescMessage, field: string, all: string): HttpBodyField | "message" | undefined {
  if (field === all) return isHttpBodyType(desc) ? "message" : undefined;
  const found = findProtoField(desc, field);
  return found?.fieldKind === "message" && isHttpBodyType(found.message) ? found : undefined;
}

/**
 * Returns a function that creates a request message from a body's bytes, or `undefined` for a rule with a JSON body.
 *
 * @param body - the request field that is the body, or `*`
 */
export function createRawReader(input: DescMessage, body: string): ((request: RestBody) => Message) | undefined {
  const location = locateHttpBody(input, body, "*");
  if (location === undefined) return undefined;
  if (location === "message") return (request) => fill(create(input), request);
  const setField = createFieldSetter(location);
  return (request) => {
    const message = create(input);
    setField(message, fill(create(location.message), request));
    return message;
  };
}

function fill(message: Message, { contentType, body }: RestBody): Message {
  return Object.assign(message, { contentType: contentType ?? "", data: body });
}

/** A response body. */
export interface RawBody {
  readonly contentType: string;
  readonly body: Uint8Array;
}

/**
 * Creates a function that returns a response message's body. Returns `undefined` for a rule with JSON responses. The
 * function throws an `Error` if the handler has set a content type that is not a media type.
 *
 * @param responseBody - the field that is the body; `""` for the complete message
 */
export function createRawBodyReader(
  output: DescMessage,
  responseBody: string,
): ((message: Message) => RawBody) | undefined {
  const location = locateHttpBody(output, responseBody, "");
  if (location === undefined) return undefined;
  return location === "message" ? toRawBody : (message) => toRawBody(loadField(message, location));
}

// Matches type "/" subtype and optional parameters. Type and subtype are tokens.
const mediaType = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+\/[!#$%&'*+\-.^_`|~0-9A-Za-z]+[\t ]*(?:;[\t\x20-\x7e]*)?$/;

/** Returns whether a string is one media type (RFC 9110 §8.3.1) without line breaks, which could inject a field. */
export function isMediaType(text: string): boolean {
  return mediaType.test(text);
}

function toRawBody(message: unknown): RawBody {
  if (!isHttpBody(message)) return { contentType: defaultType, body: new Uint8Array(0) };
  const { contentType, data } = message;
  if (contentType === "") return { contentType: defaultType, body: data };
  if (!isMediaType(contentType)) throw new Error("the content type of a google.api.HttpBody is not a media type");
  return { contentType, body: data };
}

// The type that recipients may assume for bytes without a content type (RFC 9110 §8.3).
const defaultType = "application/octet-stream";

function isHttpBody(message: unknown): message is HttpBody {
  return isMessage(message) && message.$typeName === httpBodyName;
}

/** A request's decompressed body, or one message in a stream. */
export interface RestBody {
  /** The header `Content-Type`, or `null` if there is none. */
  readonly contentType: string | null;
  /** The bytes. A request without a body has no bytes. */
  readonly body: Uint8Array;
}

/** The path variables and the query of a URL, which set fields. */
export interface RequestUrl {
  /** The values of the path template's variables, from the route table. */
  readonly captures: readonly string[];
  /** The encoded string after the question mark, or `""` if there is none. */
  readonly query: string;
}

/** The URL and body of a request that a binding reads. */
export interface RestRequest extends RestBody, RequestUrl {}
