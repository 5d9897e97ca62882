import type { DescMethod, Message } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { type BoundFields, type FieldNotes, hasRequiredFields, requireFields } from "../../../messages/json/index.ts";
import { type BodyFormat, bodyFormatOf, bodyProblem } from "./body-format.ts";
import type { HttpPattern } from "./http-rule.ts";
import type { PathVariables } from "./path-variables.ts";
import { createQueryBinding, hasParameters, readQuery } from "./query.ts";
import { bindBody, createBodyReader } from "./request-body.ts";
import { openRequestStream, type RequestStream, requireStreamable } from "./request-stream.ts";
import type { BindingOptions } from "./rest-options.ts";
import type { RequestUrl, RestRequest } from "./rest-request.ts";
import { fillUpdateMask, findUpdateMask } from "./update-mask.ts";

/** Converts the requests of a rule to messages. */
export interface RequestReader {
  readonly bodyFormat: BodyFormat;
  /** Whether the client sends a stream of messages, which {@link openStream} reads, instead of one. */
  readonly hasRequestStream: boolean;
  /** The fields that the path or the body may set; the query may set none of them. */
  readonly boundByPathOrBody: BoundFields;
  /**
   * Reads the request message.
   *
   * @throws ConnectError `InvalidArgument`, with a message that names the field, or with the HTTP status 415 for a
   * wrong content type
   */
  decode(request: RestRequest): Message;
  /** Opens the stream of messages of a request with this URL and content type. */
  openStream(request: Omit<RestRequest, "body">): RequestStream;
  /**
   * Returns the error if the rule refuses every body of this content type, which is known before the body arrives;
   * otherwise `undefined`.
   *
   * @param isEmpty - whether the body is empty or missing
   */
  bodyProblem(contentType: string | null, isEmpty: boolean): ConnectError | undefined;
}

/** Reads a message; `url` is `undefined` for the second and later messages of a stream. */
type ReadMessage = (contentType: string | null, body: Uint8Array | undefined, url: RequestUrl | undefined) => Message;

/**
 * Creates the reader of a rule.
 *
 * @throws Error if the body is a field that does not exist or that the path sets, or if the rule cannot be applied to a
 * stream of messages
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
  // In a stream, only the first message has the fields of the path, so later ones cannot be compared with them.
  const rules = { bound, sameAsBound: hasRequestStream ? undefined : sameValueAsPath };
  const { isRaw, createMessage, setFields } = createBodyReader(input, body, rules, readJson);
  if (hasRequestStream) requireStreamable(input, body, bound);
  const bodyFormat = bodyFormatOf(input, pattern, { isRaw, hasRequestStream }, options);
  const boundByPathOrBody = bindBody(input, body, bound);
  const queryBinding = createQueryBinding(input, boundByPathOrBody, options);
  const maskField = updateMaskFromBody && !hasRequestStream ? findUpdateMask(input, pattern) : undefined;
  const checksRequired = hasRequiredFields(input);

  const readMessage: ReadMessage = (contentType, bytes, url) => {
    const notes: FieldNotes | undefined = maskField && { paths: [], repeated: 0 };
    const message = bytes && createMessage ? createMessage({ contentType, body: bytes }) : create(input);
    if (url !== undefined) variables.set(message, url.captures);
    const unknownInBody = bytes && setFields?.(message, bytes, notes);
    const unknownInQuery = url?.query ? readQuery(queryBinding, url.query, message) : undefined;
    if (maskField !== undefined && notes !== undefined) fillUpdateMask(maskField, message, notes.paths);
    if (checksRequired) requireFields(input, message);
    const ignoredCount = (unknownInQuery?.count ?? 0) + (unknownInBody?.count ?? 0);
    if (ignoredCount > 0)
      onIgnored?.(method, [...(unknownInQuery?.names ?? []), ...(unknownInBody?.names ?? [])], ignoredCount);
    return message;
  };

  return {
    bodyFormat,
    hasRequestStream,
    boundByPathOrBody,
    bodyProblem: (contentType, isEmpty) => bodyProblem(bodyFormat, contentType, isEmpty),
    decode(request) {
      const { body: bytes, contentType } = request;
      // If the body is raw, an empty one is a google.api.HttpBody without bytes, for example an empty file.
      const isRead = bytes.byteLength > 0 || isRaw || bodyFormat.isRequired === true;
      const bodyBytes = isRead ? bytes : undefined;
      const problem = bodyBytes && bodyProblem(bodyFormat, contentType, false);
      if (problem !== undefined) throw problem;
      return readMessage(contentType, bodyBytes, request);
    },
    openStream(request) {
      const setsFields = (): boolean => request.captures.length > 0 || hasParameters(queryBinding, request.query);
      return openRequestStream(request, { isRaw, setsFields }, readMessage);
    },
  };
}
