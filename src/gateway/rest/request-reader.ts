import type { DescMethod, Message } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import {
  type BoundFields,
  hasRequiredFields,
  type ReadJsonOptions,
  requireFields,
  type UnknownNames,
} from "../json/index.ts";
import { type BodyFormat, bodyFormatOf, bodyProblem } from "./body-format.ts";
import { type BodyNotesOptions, createBodyNotes } from "./body-notes.ts";
import type { HttpPattern } from "./http-rule.ts";
import { RequestStream, requireStreamable, type RequestUrl } from "./request-stream.ts";
import type { PathVariables } from "./path-variables.ts";
import { readQuery } from "./query.ts";
import { bindBody, createBodyReader, type RequestBody } from "./request-body.ts";

/** The parts of a request that a binding reads. */
export interface RestRequest extends RequestBody, RequestUrl {}

/** Reports what a lenient binding has ignored: up to 16 names each from query and body, and the count of all. */
export type OnIgnored = (method: DescMethod, names: readonly string[], count: number) => void;

/** Options of {@link createRequestReader}; the same for all bindings of a service. */
export interface RequestReaderOptions extends BodyNotesOptions {
  /** How JSON bodies are read; unknown fields are ignored where `lenient`. */
  readonly readJson: ReadJsonOptions;
  /** Ignores unknown query parameters and JSON fields instead of refusing them. */
  readonly lenient: boolean;
  /** Takes and answers streams as grpc-gateway does. */
  readonly streamInResults: boolean;
  readonly onIgnored: OnIgnored | undefined;
}

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
  options: RequestReaderOptions,
): RequestReader {
  const { input, methodKind } = method;
  const { body } = pattern;
  const takesStream = methodKind === "client_streaming" || methodKind === "bidi_streaming";
  const bodyFormat = bodyFormatOf(input, body, { ...options, takesStream });
  const readBody = createBodyReader(input, body, variables.boundFields, options.readJson);
  const boundByPathOrBody = bindBody(input, body, variables.boundFields);
  if (takesStream) requireStreamable(input, body, variables.boundFields);
  const bodyNotes = takesStream ? undefined : createBodyNotes(input, pattern, options);
  const queryBinding = { message: input, boundFields: boundByPathOrBody, lenient: options.lenient };

  const applyUrl = ({ captures, query }: RequestUrl, message: Message): UnknownNames | undefined => {
    variables.set(message, captures);
    return query === "" ? undefined : readQuery(queryBinding, query, message);
  };
  const check = createCheck(method, options.onIgnored);

  return {
    bodyFormat,
    takesStream,
    boundByPathOrBody,
    bodyProblem: (contentType, isEmpty) => bodyProblem(bodyFormat, contentType, isEmpty),
    decode(request) {
      const notes = bodyNotes?.open();
      const isEmpty = request.body.byteLength === 0;
      const problem = bodyProblem(bodyFormat, request.contentType, isEmpty);
      if (problem !== undefined) throw problem;
      // Bytes are a google.api.HttpBody even where there are none, such as an empty file.
      const read = isEmpty && bodyFormat.kind !== "bytes" ? undefined : readBody(request, notes);
      const message = read?.message ?? create(input);
      const unknown = applyUrl(request, message);
      if (notes !== undefined) bodyNotes?.settle(notes, message);
      check?.(message, unknown, read?.ignored);
      return message;
    },
    openStream: (request) =>
      new RequestStream(request, bodyFormat, {
        first(first) {
          const { message, ignored } = readBody(first, undefined);
          const unknown = applyUrl(request, message);
          check?.(message, unknown, ignored);
          return message;
        },
        further(further) {
          const { message, ignored } = readBody(further, undefined);
          check?.(message, undefined, ignored);
          return message;
        },
      }),
  };
}

type Check = (message: Message, ofQuery: UnknownNames | undefined, ofBody: UnknownNames | undefined) => void;

/**
 * Creates the check of a message that was read: for fields that it lacks, and names that were ignored. `undefined` when
 * there is nothing to check.
 */
function createCheck(method: DescMethod, onIgnored: OnIgnored | undefined): Check | undefined {
  const { input } = method;
  const mayLackFields = hasRequiredFields(input);
  if (!mayLackFields && onIgnored === undefined) return undefined;
  return (message, ofQuery, ofBody) => {
    if (mayLackFields) requireFields(input, message);
    const count = (ofQuery?.count ?? 0) + (ofBody?.count ?? 0);
    if (count > 0) onIgnored?.(method, [...(ofQuery?.names ?? []), ...(ofBody?.names ?? [])], count);
  };
}
