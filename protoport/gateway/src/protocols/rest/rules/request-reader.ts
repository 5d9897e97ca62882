import { create, type DescField, type DescMessage, type DescMethod, isMessage, type Message } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import type { ConnectError } from "@connectrpc/connect";
import {
  type BoundFields,
  createFieldSetter,
  type FieldNotes,
  hasRequiredFields,
  loadField,
  problem,
  requireMessageFields,
  type UnknownNames,
} from "../../../protobuf/index.ts";
import { type BodyFormat, bodyFormatOf, bodyProblem, isProtobuf } from "./body-format.ts";
import { findProtoField } from "./field-path.ts";
import type { RequestUrl, RestRequest } from "./http-body.ts";
import type { HttpPattern } from "./http-rule.ts";
import type { PathVariables } from "./path-variables.ts";
import { createQueryBinding, hasParameters, readQuery } from "./query.ts";
import { bindBody, createBodyReader, createFieldWrapper } from "./request-body.ts";
import { openRequestStream, type RequestStream, requireStreamable } from "./request-stream.ts";
import type { BindingOptions, OnIgnored } from "./rest-options.ts";

/** Converts a rule's requests to messages. */
export interface RequestReader {
  readonly bodyFormat: BodyFormat;
  /** Whether the client sends a message stream instead of one message. {@link openStream} reads a message stream. */
  readonly hasRequestStream: boolean;
  /** The fields that the path or the body may set. The query must not set these fields. */
  readonly boundByPathOrBody: BoundFields;
  /**
   * Reads the request message.
   *
   * @throws ConnectError `InvalidArgument` with a message that names the field, or an error with the HTTP status 415
   * for a wrong content type
   * @param decodeProtobuf - decodes a request message. Required if the rule accepts the binary format
   */
  decode(request: RestRequest, decodeProtobuf?: DecodeProtobuf): Message;
  /** Opens the message stream of a request with the given URL and content type. */
  openStream(request: Omit<RestRequest, "body">): RequestStream;
  /**
   * Returns the error if the rule refuses every body with this content type. The error is known before the body
   * arrives. A missing body counts as empty.
   */
  bodyProblem(contentType: string | null, isEmpty: boolean): ConnectError | undefined;
}

type DecodeProtobuf = (bytes: Uint8Array) => Message;

/** Reads a message. Only the first message in a stream has a `url`. */
type ReadRequestMessage = (
  contentType: string | null,
  body: Uint8Array | undefined,
  url: RequestUrl | undefined,
  decodeProtobuf?: DecodeProtobuf,
) => Message;

/**
 * Creates a rule's reader.
 *
 * @throws Error if the body's field does not exist or is set by the path, or if the rule cannot be applied to a message
 * stream
 */
export function createRequestReader(
  method: DescMethod,
  pattern: HttpPattern,
  variables: PathVariables,
  options: BindingOptions,
): RequestReader {
  const { sameValueAsPath, updateMaskFromBody, readJson, onIgnored } = options;
  const { input, methodKind } = method;
  const { body } = pattern;
  const bound = variables.boundFields;
  const hasRequestStream = methodKind === "client_streaming" || methodKind === "bidi_streaming";
  // Later messages in a stream cannot be compared with the path, which sets fields only in the first message.
  const rules = { bound, sameAsBound: hasRequestStream ? undefined : sameValueAsPath };
  const { isRaw, createMessage, readMessage: readBody, setFields } = createBodyReader(input, body, rules, readJson);
  if (hasRequestStream) requireStreamable(input, body, bound);
  const isUnary = methodKind === "unary";
  const bodyFormat = bodyFormatOf(input, pattern, { isRaw, hasRequestStream, isUnary }, options);
  const boundByPathOrBody = bindBody(input, body, bound);
  const queryBinding = createQueryBinding(input, boundByPathOrBody, options);
  const maskField = updateMaskFromBody && !hasRequestStream ? findUpdateMask(input, pattern) : undefined;
  const checksRequired = hasRequiredFields(input);
  const wrap = createFieldWrapper(input, body);
  const readBytes = (contentType: string | null, bytes: Uint8Array, decode?: DecodeProtobuf): Message | undefined =>
    decode && isProtobuf(bodyFormat, contentType) ? decode(wrap(bytes)) : createMessage?.({ contentType, body: bytes });

  const readMessage: ReadRequestMessage = (contentType, bytes, url, decodeProtobuf) => {
    const notes: FieldNotes | undefined = maskField && { paths: [], repeated: 0 };
    const fromBytes = bytes && readBytes(contentType, bytes, decodeProtobuf);
    const fromJson = bytes && !fromBytes ? readBody?.(bytes, notes) : undefined;
    const message = fromBytes ?? fromJson?.message ?? create(input);
    if (url !== undefined) variables.set(message, url.captures);
    const unknownInBody = fromJson?.ignored ?? (bytes && !fromBytes ? setFields?.(message, bytes, notes) : undefined);
    const unknownInQuery = url?.query ? readQuery(queryBinding, url.query, message) : undefined;
    if (maskField !== undefined && notes !== undefined) fillUpdateMask(maskField, message, notes, unknownInBody);
    if (checksRequired) requireMessageFields(input, message);
    if (onIgnored !== undefined) reportIgnored(onIgnored, method, [unknownInQuery, unknownInBody]);
    return message;
  };

  return {
    bodyFormat,
    hasRequestStream,
    boundByPathOrBody,
    bodyProblem: (contentType, isEmpty) => bodyProblem(bodyFormat, contentType, isEmpty),
    decode(request, decodeProtobuf) {
      const { body: bytes, contentType } = request;
      // An empty raw body is a google.api.HttpBody without bytes, for example an empty file.
      const isRead = bytes.byteLength > 0 || isRaw || bodyFormat.isRequired === true;
      const bodyBytes = isRead ? bytes : undefined;
      const refusal = bodyBytes && bodyProblem(bodyFormat, contentType, false);
      if (refusal !== undefined) throw refusal;
      return readMessage(contentType, bodyBytes, request, decodeProtobuf);
    },
    openStream(request) {
      const setsFields = (): boolean => request.captures.length > 0 || hasParameters(queryBinding, request.query);
      return openRequestStream(request, { isRaw, setsFields }, readMessage);
    },
  };
}

function reportIgnored(onIgnored: OnIgnored, method: DescMethod, unknown: readonly (UnknownNames | undefined)[]): void {
  const count = unknown.reduce((sum, names) => sum + (names?.count ?? 0), 0);
  if (count === 0) return;
  onIgnored(
    method,
    unknown.flatMap((names) => names?.names ?? []),
    count,
  );
}

/** Returns the request's only FieldMask if the method is PATCH and the body is a message field, as in grpc-gateway. */
function findUpdateMask(input: DescMessage, { httpMethod, body }: HttpPattern): DescField | undefined {
  const bodyField = findProtoField(input, body);
  if (httpMethod !== "PATCH" || bodyField?.fieldKind !== "message") return undefined;
  const [mask, other] = input.fields.filter((field) => field.message?.typeName === FieldMaskSchema.typeName);
  return other === undefined && mask?.fieldKind === "message" && mask.oneof === undefined ? mask : undefined;
}

/**
 * Fills a missing or empty update mask with the paths of the fields that the body has set.
 *
 * @throws ConnectError `InvalidArgument` if all fields were ignored, because an empty mask could mean all fields
 */
function fillUpdateMask(maskField: DescField, message: Message, notes: FieldNotes, ignored?: UnknownNames): void {
  const sentMask = loadField(message, maskField);
  if (isMessage(sentMask, FieldMaskSchema) && sentMask.paths.length > 0) return;
  if (notes.paths.length === 0) {
    if (ignored === undefined || ignored.count === 0) return;
    throw problem("ERR_MESSAGE_INVALID", `the body must set a field to update, got only ${ignored.list()}`);
  }
  // Paths in the mask are relative to the resource, so they lack the body field's name.
  const paths = notes.paths.map((path) => path.slice(path.indexOf(".") + 1)).toSorted();
  createFieldSetter(maskField)(message, create(FieldMaskSchema, { paths }));
}
