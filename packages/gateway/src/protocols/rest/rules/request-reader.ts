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

/** Turns the requests of a rule into messages. */
export interface RequestReader {
  readonly bodyFormat: BodyFormat;
  /** Whether the client sends a stream of messages, which {@link openStream} reads, rather than one. */
  readonly takesStream: boolean;
  /** The fields that the path or the body may set; the query sets none of them. */
  readonly boundByPathOrBody: BoundFields;
  /**
   * Reads the request message.
   *
   * @throws ConnectError `InvalidArgument` whose message names the field, or with status 415 for a wrong content type
   */
  decode(request: RestRequest): Message;
  /** Opens the stream of messages of a request with this URL and content type. */
  openStream(request: Omit<RestRequest, "body">): RequestStream;
  /**
   * Returns why every body of this content type is refused, before it arrives; `undefined` when it is not.
   *
   * @param isEmpty - whether there is none, or it is empty
   */
  bodyProblem(contentType: string | null, isEmpty: boolean): ConnectError | undefined;
}

/** Reads a message, with the URL of its request unless it is a later one of a stream. */
type ReadMessage = (contentType: string | null, body: Uint8Array | undefined, url: RequestUrl | undefined) => Message;

/**
 * Creates the reader of a rule.
 *
 * @throws Error when the body is a field that does not exist or that the path sets, or when the rule cannot be applied
 * to a stream of messages
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
  const takesStream = methodKind === "client_streaming" || methodKind === "bidi_streaming";
  // Only the first message of a stream has the path that others could repeat.
  const rules = { bound, sameAsBound: sameValueAsPath && !takesStream };
  const { isRaw, makeMessage, setFields } = createBodyReader(input, body, rules, readJson);
  if (takesStream) requireStreamable(input, body, bound);
  const bodyFormat = bodyFormatOf(input, body, { isRaw, takesStream }, options);
  const boundByPathOrBody = bindBody(input, body, bound);
  const queryBinding = createQueryBinding(input, boundByPathOrBody, options);
  const maskField = updateMaskFromBody && !takesStream ? findUpdateMask(input, pattern) : undefined;
  const mayLackFields = hasRequiredFields(input);

  const readMessage: ReadMessage = (contentType, bytes, url) => {
    const notes: FieldNotes | undefined = maskField && { paths: [], repeated: 0 };
    const message = bytes && makeMessage ? makeMessage({ contentType, body: bytes }) : create(input);
    if (url !== undefined) variables.set(message, url.captures);
    const ofBody = bytes && setFields?.(message, bytes, notes);
    const ofQuery = url?.query ? readQuery(queryBinding, url.query, message) : undefined;
    if (maskField !== undefined && notes !== undefined) fillUpdateMask(maskField, message, notes.paths);
    if (mayLackFields) requireFields(input, message);
    const ignored = (ofQuery?.count ?? 0) + (ofBody?.count ?? 0);
    if (ignored > 0) onIgnored?.(method, [...(ofQuery?.names ?? []), ...(ofBody?.names ?? [])], ignored);
    return message;
  };

  return {
    bodyFormat,
    takesStream,
    boundByPathOrBody,
    bodyProblem: (contentType, isEmpty) => bodyProblem(bodyFormat, contentType, isEmpty),
    decode(request) {
      const { body: bytes, contentType } = request;
      // Bytes are a google.api.HttpBody even where there are none, such as an empty file.
      const isGiven = bytes.byteLength > 0 || isRaw || bodyFormat.isRequired === true;
      const given = isGiven ? bytes : undefined;
      const problem = given && bodyProblem(bodyFormat, contentType, false);
      if (problem !== undefined) throw problem;
      return readMessage(contentType, given, request);
    },
    openStream(request) {
      const setsFields = (): boolean => request.captures.length > 0 || hasParameters(queryBinding, request.query);
      return openRequestStream(request, { isRaw, setsFields }, readMessage);
    },
  };
}
