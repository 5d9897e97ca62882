import { create, type DescField, type DescMessage, isMessage, type Message } from "@bufbuild/protobuf";
import { createFieldSetter, loadField } from "../../../messages/json/index.ts";
import { findProtoField } from "./field-path.ts";
import type { RequestBody } from "./rest-request.ts";

/** A google.api.HttpBody: bytes that are sent over HTTP unchanged, with their content type. */
interface HttpBody extends Message<"google.api.HttpBody"> {
  contentType: string;
  data: Uint8Array;
}

// By its name, because every service generates a descriptor of its own.
const httpBodyName = "google.api.HttpBody";

/** Returns whether a type is google.api.HttpBody. */
export function isHttpBodyType(type: DescMessage | undefined): boolean {
  return type?.typeName === httpBodyName;
}

type HttpBodyField = DescField & { readonly fieldKind: "message"; readonly message: DescMessage };

/** Returns where the bytes of a body are: in the whole message, in a field of it, or nowhere. */
function placeOf(desc: DescMessage, field: string, whole: string): HttpBodyField | "whole" | undefined {
  if (field === whole) return isHttpBodyType(desc) ? "whole" : undefined;
  const found = findProtoField(desc, field);
  return found?.fieldKind === "message" && isHttpBodyType(found.message) ? found : undefined;
}

/**
 * Creates the function that makes a request message of the bytes of a body; `undefined` for a rule whose body is JSON.
 *
 * @param body - the request field that is the body, or `*`
 */
export function createRawReader(input: DescMessage, body: string): ((request: RequestBody) => Message) | undefined {
  const place = placeOf(input, body, "*");
  if (place === undefined) return undefined;
  if (place === "whole") return (request) => fill(create(input), request);
  const setField = createFieldSetter(place);
  return (request) => {
    const message = create(input);
    setField(message, fill(create(place.message), request));
    return message;
  };
}

function fill(message: Message, { contentType, body }: RequestBody): Message {
  return Object.assign(message, { contentType: contentType ?? "", data: body });
}

/** A body as it is sent. */
export interface RawBody {
  readonly contentType: string;
  readonly body: Uint8Array;
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
  const place = placeOf(output, responseBody, "");
  if (place === undefined) return undefined;
  return place === "whole" ? toRawBody : (message) => toRawBody(loadField(message, place));
}

// Type "/" subtype, each a token, and parameters.
const mediaType = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+\/[!#$%&'*+\-.^_`|~0-9A-Za-z]+[\t ]*(?:;[\t\x20-\x7e]*)?$/;

/** Returns whether a text is one media type (RFC 9110 §8.3.1). Line breaks cannot smuggle in another header field. */
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

// RFC 9110 §8.3: what recipients may assume about bytes without a content type.
const defaultType = "application/octet-stream";

function isHttpBody(message: unknown): message is HttpBody {
  return isMessage(message) && message.$typeName === httpBodyName;
}
