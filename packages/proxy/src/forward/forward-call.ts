import { AsyncResource } from "node:async_hooks";
import type { DescMethod, Message } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { HeaderFields } from "@plantstore/gateway/exchange";
import {
  type CallInit,
  type ClientMethod,
  type Retries,
  StreamCall,
  type StreamAnswer,
  UnaryCall,
} from "../client/index.ts";
import { problem, errorCodeOf } from "@plantstore/gateway/internal/errors";
import type { ProtocolName, Reply } from "@plantstore/gateway/internal/protocols";
import type { Upstream } from "../upstreams/index.ts";
import { requestOf } from "@plantstore/gateway/internal/serve";
import { abortOf } from "./call-abort.ts";
import type { ForwardedFields } from "./forward-rules.ts";
import { AnswerMetadata, forwardHeader } from "./forwarded-metadata.ts";
import { errorOnTheWay, malformedAnswer } from "./upstream-errors.ts";

/** One RPC as it is passed on. */
export interface ForwardTarget {
  readonly upstream: Upstream;
  readonly method: ClientMethod;
  /** Decodes a message of the upstream. */
  readonly decode: (message: Message) => Message;
  readonly retries: Retries;
  readonly requestFields: ForwardedFields;
  readonly answerFields: ForwardedFields;
  /** Milliseconds for a unary call whose caller sets no deadline; `undefined` for none. */
  readonly timeoutMs: number | undefined;
  /** The most milliseconds for a call that has a deadline, and for every unary call; `undefined` for no limit. */
  readonly timeoutMaxMs: number | undefined;
}

/** Whether a protocol writes the fields of messages. The others write what a codec encodes: forwarded messages as they came. */
const writesFields: Readonly<Record<ProtocolName, boolean>> = {
  connect: false,
  grpc: false,
  "grpc-web": false,
  rest: true,
};

/** Forwards a call with one message each way, and passes the response on. Throws what keeps it from being sent. */
export function forwardUnary(target: ForwardTarget, message: Message, context: HandlerContext, reply: Reply): void {
  // The server shuts down, or the call has ended.
  const { ended } = requestOf(context);
  if (ended !== undefined) throw ended;
  const request = target.method.envelop(message);
  // Nothing is compressed for an upstream.
  if (request instanceof Promise) throw new TypeError("a request to an upstream is compressed");
  new ForwardedUnary(target, context, request, reply).start();
}

/** Forwards a call with one message each way, and returns the message of the response: for interceptors. */
export function promiseUnary(target: ForwardTarget, message: Message, context: HandlerContext): Promise<Message> {
  return new Promise((resolve, reject) => {
    forwardUnary(target, message, context, { take: (response) => resolve(response.message), takeError: reject });
  });
}

/** Passes on a call with a stream at least one way, and returns the messages of its answer as they come. */
export function forwardStream(
  target: ForwardTarget,
  messages: AsyncIterable<Message>,
  context: HandlerContext,
): AsyncIterable<Message> {
  const metadata = new AnswerMetadata(context, target.answerFields);
  const init = initOf(target, context);
  const answer = new Promise<StreamAnswer>((resolve, reject) => {
    new ForwardedStream(init, messages, metadata, resolve, reject).start();
  });
  // The call may end before anybody reads.
  answer.catch(() => undefined);
  const iterator = new ForwardedMessages(answer, writesFields[requestOf(context).protocol] ? target.decode : undefined);
  return { [Symbol.asyncIterator]: () => iterator };
}

/**
 * Returns the only message of an answer that is a stream on the wire, once its status has said that it is a success.
 *
 * @throws ConnectError `Internal` for none or several
 */
export async function onlyAnswer(messages: AsyncIterable<Message>): Promise<Message> {
  let only: Message | undefined;
  for await (const message of messages) {
    if (only !== undefined) throw problem("ERR_UPSTREAM_ANSWER", "the answer of the service has more than one message");
    only = message;
  }
  if (only === undefined) throw problem("ERR_UPSTREAM_ANSWER", "the answer of the service has no message");
  return only;
}

function initOf(target: ForwardTarget, context: HandlerContext): CallInit {
  const { upstream, method, retries } = target;
  const fields = forwardHeader(context, target.requestFields);
  const timeoutMs = timeoutOf(target, context, method.desc);
  return { upstream, method, fields, signal: abortOf(context), timeoutMs, retries };
}

function timeoutOf(
  { timeoutMs, timeoutMaxMs }: ForwardTarget,
  context: HandlerContext,
  { methodKind }: DescMethod,
): number | undefined {
  const wanted = context.timeoutMs() ?? (methodKind === "unary" ? (timeoutMs ?? timeoutMaxMs) : undefined);
  if (wanted === undefined) return undefined;
  // A deadline that has just passed is told by the call itself.
  return Math.max(1, Math.min(wanted, timeoutMaxMs ?? wanted));
}

class ForwardedUnary extends UnaryCall {
  /** Hooks of the program find the context of this call, rather than that of the one that has opened the connection. */
  readonly #async = new AsyncResource("ForwardedUnary");
  readonly #context: HandlerContext;
  readonly #reply: Reply;
  readonly #metadata: AnswerMetadata;
  readonly #decode: ((message: Message) => Message) | undefined;

  constructor(target: ForwardTarget, context: HandlerContext, request: Uint8Array, reply: Reply) {
    // Created first, so that what the program's rules throw is a fault of their own.
    const metadata = new AnswerMetadata(context, target.answerFields);
    super(initOf(target, context), request);
    this.#context = context;
    this.#reply = reply;
    this.#metadata = metadata;
    this.#decode = writesFields[requestOf(context).protocol] ? target.decode : undefined;
  }

  protected override begun(head: HeaderFields): void {
    this.#metadata.header(head);
  }

  protected override completed(trailer: HeaderFields): void {
    this.#metadata.trailer(trailer);
    super.completed(trailer);
  }

  protected override answered(message: Message): void {
    let decoded: Message;
    try {
      decoded = this.#decode === undefined ? message : this.#decode(message);
    } catch (error) {
      return this.#fail(error);
    }
    const { responseHeader: header, responseTrailer: trailer } = this.#context;
    this.#async.runInAsyncScope(() => this.#reply.take({ message: decoded, header, trailer }));
  }

  protected override unreadable(error: ConnectError): void {
    this.#fail(malformedAnswer(error));
  }

  protected override failed(error: ConnectError, trailer: HeaderFields | undefined): void {
    if (trailer !== undefined) this.#metadata.trailer(trailer);
    this.#fail(trailer === undefined ? errorOnTheWay(error) : error);
  }

  #fail(error: unknown): void {
    this.#async.runInAsyncScope(() => this.#reply.takeError(error));
  }
}

class ForwardedStream extends StreamCall {
  readonly #metadata: AnswerMetadata;

  constructor(
    init: CallInit,
    messages: AsyncIterable<Message>,
    metadata: AnswerMetadata,
    resolve: (answer: StreamAnswer) => void,
    reject: (error: ConnectError) => void,
  ) {
    super(init, messages, resolve, reject);
    this.#metadata = metadata;
  }

  protected override begun(head: HeaderFields): void {
    this.#metadata.header(head);
    super.begun(head);
  }

  protected override completed(trailer: HeaderFields): void {
    this.#metadata.trailer(trailer);
    super.completed(trailer);
  }

  protected override failed(error: ConnectError, trailer: HeaderFields | undefined): void {
    if (trailer !== undefined) this.#metadata.trailer(trailer);
    super.failed(trailer === undefined ? errorOnTheWay(error) : error, trailer);
  }
}

// No test can tell: nobody reads what `return()` resolves to.
const over: IteratorResult<Message> = { done: true, value: undefined };

/** The messages of an answer, which are asked for one by one: the upstream may send as much as the caller takes. */
class ForwardedMessages implements AsyncIterator<Message> {
  readonly #answer: Promise<StreamAnswer>;
  readonly #decode: ((message: Message) => Message) | undefined;
  #messages: AsyncIterator<Message> | undefined;

  constructor(answer: Promise<StreamAnswer>, decode: ((message: Message) => Message) | undefined) {
    this.#answer = answer;
    this.#decode = decode;
  }

  async next(): Promise<IteratorResult<Message>> {
    this.#messages ??= (await this.#answer).message[Symbol.asyncIterator]();
    let result: IteratorResult<Message>;
    try {
      result = await this.#messages.next();
    } catch (error) {
      const found = ConnectError.from(error);
      throw isTold(found) ? found : malformedAnswer(found);
    }
    if (result.done === true || this.#decode === undefined) return result;
    return { done: false, value: this.#decode(result.value) };
  }

  return(): Promise<IteratorResult<Message>> {
    // Before the header has come, the signal of the call ends it.
    return this.#messages?.return?.() ?? Promise.resolve(over);
  }
}

/** Returns whether an error is a status of the upstream, or one that has been looked at. */
function isTold(error: ConnectError): boolean {
  return error.code === Code.Canceled || errorCodeOf(error) !== undefined || error.metadata.has("grpc-status");
}
