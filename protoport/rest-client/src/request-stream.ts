import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { concatBytes } from "@protoport/gateway/exchange";
import type { EncodedBody } from "./request-body.ts";
import { isRawBody, type RestMethod } from "./rest-method.ts";
import type { RestClientRule } from "./rest-rule.ts";

// Maximum number of bytes in a request stream from a web page, which is collected before sending. Firefox and Safari
// cannot stream a request, and Chrome cannot over HTTP/1.1.
const maxCollectedBytes = 16 * 1024 * 1024;

/** The first message of a request stream, and an iterator for the other messages. */
interface OpenedInput {
  readonly first: Message | undefined;
  readonly rest: AsyncIterator<Message>;
}

/** Reads the first message of a request stream, because this message determines the URL. */
export async function openInput(input: AsyncIterable<Message>): Promise<OpenedInput> {
  const rest = input[Symbol.asyncIterator]();
  const { done, value } = await rest.next();
  return { first: done === true ? undefined : value, rest };
}

/**
 * Returns the only message of a request stream. @throws ConnectError `InvalidArgument` if the stream does not contain
 * exactly one message
 */
export async function onlyInput(input: AsyncIterable<Message>): Promise<Message> {
  const { first, rest } = await openInput(input);
  if (first === undefined) throw new ConnectError("the request message is missing", Code.InvalidArgument);
  const { done } = await rest.next();
  if (done === true) return first;
  await rest.return?.();
  throw new ConnectError("this RPC accepts only one request message", Code.InvalidArgument);
}

/** The body of a request stream: messages as JSON lines, or the bytes in google.api.HttpBody messages. */
interface StreamBody {
  readonly contentType: string | undefined;
  readonly body: ReadableStream<Uint8Array> | Uint8Array;
  /** Returns why the body was aborted, or `undefined` if the body was not aborted. */
  readonly failure: () => unknown;
}

/**
 * Opens the body of a request stream.
 *
 * @throws ConnectError `ResourceExhausted` in a web page if the stream exceeds the limit, and any error from the input
 */
export async function openStreamBody(
  method: RestMethod,
  rule: RestClientRule,
  first: EncodedBody | undefined,
  { rest }: OpenedInput,
): Promise<StreamBody> {
  const isRaw = isRawBody(rule);
  const contentType = isRaw ? first?.contentType : "application/x-ndjson";
  const toPiece = ({ bytes }: EncodedBody): Uint8Array => (isRaw ? bytes : concatBytes([bytes, lineFeedBytes]));
  const next = async (): Promise<Uint8Array | undefined> => {
    const { done, value } = await rest.next();
    return done === true ? undefined : toPiece(method.writeLater(rule, value));
  };
  const begin = first === undefined ? undefined : toPiece(first);
  if (runsInWebPage()) return { contentType, body: await collect(begin, next), failure: () => undefined };
  let failure: unknown;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      if (begin !== undefined) controller.enqueue(begin);
    },
    async pull(controller) {
      try {
        const piece = await next();
        if (piece === undefined) controller.close();
        else controller.enqueue(piece);
      } catch (error) {
        failure = error;
        controller.error(error);
      }
    },
  });
  return { contentType, body, failure: () => failure };
}

const lineFeedBytes = new Uint8Array([0x0a]);

async function collect(
  begin: Uint8Array | undefined,
  next: () => Promise<Uint8Array | undefined>,
): Promise<Uint8Array> {
  const pieces = begin === undefined ? [] : [begin];
  let byteLength = begin?.byteLength ?? 0;
  for (let piece = await next(); piece !== undefined; piece = await next()) {
    pieces.push(piece);
    byteLength += piece.byteLength;
    if (byteLength <= maxCollectedBytes) continue;
    throw new ConnectError(
      `a browser cannot send a stream larger than ${maxCollectedBytes} bytes`,
      Code.ResourceExhausted,
    );
  }
  return concatBytes(pieces);
}

/** Returns whether the code runs in a web page or a web page's worker. */
function runsInWebPage(): boolean {
  return "document" in globalThis || "importScripts" in globalThis;
}
