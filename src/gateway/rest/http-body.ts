import { create, type DescField, type DescMessage, isMessage, type Message } from "@bufbuild/protobuf";
import { createFieldSetter } from "../json/index.ts";
import { findField } from "./field-path.ts";
import type { RequestBody } from "./request-body.ts";

/** A google.api.HttpBody: bytes that are sent over HTTP unchanged, with their content type. */
export interface HttpBody extends Message<"google.api.HttpBody"> {
  contentType: string;
  data: Uint8Array;
}

/** Returns whether a type is google.api.HttpBody, by its name, because every service generates its own descriptor. */
export function isHttpBody(desc: DescMessage | undefined): boolean {
  return desc?.typeName === "google.api.HttpBody";
}

/** Returns whether a rule's body is bytes: its request, or the field that is the body, is a google.api.HttpBody. */
export function takesRawBody(input: DescMessage, body: string): boolean {
  return body === "*" ? isHttpBody(input) : isHttpBodyField(findField(input, body));
}

/**
 * Creates the function that puts the bytes of a body into a request message; `undefined` for a rule whose body is JSON.
 *
 * @param body - the request field that is the body, or `*`
 */
export function createRawReader(
  input: DescMessage,
  body: string,
): ((request: RequestBody, message: Message) => void) | undefined {
  if (body === "*") return isHttpBody(input) ? (request, message) => fill(message, request) : undefined;
  const field = findField(input, body);
  if (!isHttpBodyField(field)) return undefined;
  const setField = createFieldSetter(field);
  return (request, message) => setField(message, fill(create(field.message), request));
}

function fill(message: Message, { contentType, body }: RequestBody): Message {
  return Object.assign(message, { contentType: contentType ?? "", data: body });
}

/**
 * Creates the function that finds the body in a response message; `undefined` for a rule whose answers are JSON. It
 * throws an `Error` when the content type is not a media type, which is the handler's fault.
 *
 * @param responseBody - the field that is the body; `""` for the whole message
 */
export function createRawFinder(
  output: DescMessage,
  responseBody: string,
): ((message: Message) => RawBody) | undefined {
  if (responseBody === "") return isHttpBody(output) ? toRawBody : undefined;
  const field = findField(output, responseBody);
  if (!isHttpBodyField(field)) return undefined;
  const name = field.localName;
  return (message) => toRawBody(Reflect.get(message, name));
}

type HttpBodyField = DescField & { readonly fieldKind: "message"; readonly message: DescMessage };

function isHttpBodyField(field: DescField | undefined): field is HttpBodyField {
  return field?.fieldKind === "message" && isHttpBody(field.message);
}

/** A body as it is sent. */
export interface RawBody {
  readonly contentType: string;
  readonly body: Uint8Array;
}

/** Returns whether a text is one media type (RFC 9110 §8.3.1). Line breaks cannot smuggle in another header field. */
export function isMediaType(text: string): boolean {
  return mediaType.test(text);
}

// Type "/" subtype, each a token, and parameters.
const mediaType = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+\/[!#$%&'*+\-.^_`|~0-9A-Za-z]+[\t ]*(?:;[\t\x20-\x7e]*)?$/;

function toRawBody(message: unknown): RawBody {
  if (!isMessage(message) || !isHttpBodyMessage(message)) return { contentType: defaultType, body: new Uint8Array(0) };
  const { contentType, data } = message;
  if (contentType === "") return { contentType: defaultType, body: data };
  if (!isMediaType(contentType)) throw new Error("the content type of a google.api.HttpBody is not a media type");
  return { contentType, body: data };
}

// RFC 9110 §8.3: what recipients may assume about bytes without a content type.
const defaultType = "application/octet-stream";

function isHttpBodyMessage(message: Message): message is HttpBody {
  return message.$typeName === "google.api.HttpBody";
}
