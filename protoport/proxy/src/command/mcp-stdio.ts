import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import type { FetchHandler } from "@protoport/gateway";

/** The standard streams, and the credential, for the MCP client that started this process. */
export interface StdioClient {
  readonly input: Readable;
  /** The output stream, which gets only protocol messages. */
  readonly output: Writable;
  /** The bearer token for all calls, or `undefined` for none. */
  readonly token: string | undefined;
  /** Writes a line to standard error. */
  readonly err: (text: string) => void;
}

/** Maximum characters in a line. The limit is twice the default message limit. */
const lineLengthMax = 8 * 1024 * 1024;

/** Maximum concurrent requests. Further requests are queued. Agents call only a few tools concurrently. */
const runningMax = 32;

/** Maximum characters in queued requests, enough for two of the longest lines. Further requests are refused. */
const queuedLengthMax = 2 * lineLengthMax;

/** The signal that stops a server on standard input, and the timeout for its calls. */
export interface StdioStop {
  /** Resolves when a signal requests the stop. */
  readonly requested: Promise<unknown>;
  /** Milliseconds after which calls that are still in progress are cancelled. */
  readonly timeoutMs: number;
}

/** The message members that the stdio transport reads. */
interface StdioMessage {
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: {
    readonly name?: unknown;
    readonly requestId?: unknown;
    readonly _meta?: Readonly<Record<string, unknown>> | null;
  } | null;
}

interface QueuedRequest {
  readonly message: StdioMessage;
  readonly line: string;
}

/**
 * Serves MCP on a process's streams. Each line is one message. When the input ends or a stop is requested, no more
 * messages are read, but running and queued calls get their results. Resolves when all results are written. After the
 * timeout, calls are cancelled, and results that the client does not read are dropped.
 */
export async function serveStdio(serve: FetchHandler, client: StdioClient, stop: StdioStop): Promise<void> {
  await new StdioServer(serve, client, stop).run();
}

class StdioServer {
  readonly #serve: FetchHandler;
  readonly #client: StdioClient;
  readonly #stop: StdioStop;
  /** The running requests with their ids in JSON. A client may send an id again before the response. */
  readonly #running = new Map<AbortController, string | undefined>();
  readonly #calls = new Set<Promise<void>>();
  readonly #queue: QueuedRequest[] = [];
  #queuedLength = 0;
  /** Resolves when the client has read the output. All waiting calls share the promise; undefined if no call waits. */
  #drained: Promise<unknown> | undefined;
  /** Aborted when the server writes no more messages. */
  readonly #closed = new AbortController();

  constructor(serve: FetchHandler, client: StdioClient, stop: StdioStop) {
    this.#serve = serve;
    this.#client = client;
    this.#stop = stop;
  }

  async run(): Promise<void> {
    const { input, output } = this.#client;
    // The client has closed the output.
    output.on("error", () => {
      input.destroy();
      this.#close();
    });
    void this.#stop.requested.then(() => input.destroy());
    await this.#readRequests();
    // The client may never read its responses, and calls may never end.
    const timer = setTimeout(() => this.#close(), this.#stop.timeoutMs);
    while (this.#calls.size > 0) await Promise.race(this.#calls);
    await this.#flush();
    clearTimeout(timer);
    // Aborting removes the listeners on the signal.
    this.#closed.abort();
  }

  async #readRequests(): Promise<void> {
    const { input, err } = this.#client;
    for await (const line of linesOf(input, err)) {
      if (line.trim() === "") continue;
      const message = parse(line);
      // A cancellation is not queued, because queued requests may wait for the cancelled call.
      if (message.method === "notifications/cancelled") this.#cancel(message);
      else if (this.#calls.size < runningMax) this.#start({ message, line });
      else if (this.#queuedLength + line.length <= queuedLengthMax) this.#enqueue({ message, line });
      else await this.#refuse(message);
      if (this.#closed.signal.aborted) return;
    }
  }

  /** Cancels all calls, and drops results that the client has not read. */
  #close(): void {
    this.#queue.length = 0;
    for (const controller of this.#running.keys()) controller.abort();
    this.#closed.abort();
  }

  /** Waits until the client reads the refusal, for at most the stop timeout. No input is read meanwhile. */
  async #refuse(message: StdioMessage): Promise<void> {
    const timer = setTimeout(() => {
      this.#client.err("the MCP client does not read its responses");
      this.#close();
    }, this.#stop.timeoutMs);
    await this.#writeError(message, -32_000, "too many requests are queued; wait for responses");
    clearTimeout(timer);
  }

  #enqueue(request: QueuedRequest): void {
    this.#queue.push(request);
    this.#queuedLength += request.line.length;
  }

  /** Runs a request, and afterwards the next request in the queue. */
  #start(request: QueuedRequest): void {
    const call = this.#handle(request)
      .catch(() => undefined)
      .then(() => {
        this.#calls.delete(call);
        const next = this.#queue.shift();
        if (next === undefined) return;
        this.#queuedLength -= next.line.length;
        this.#start(next);
      });
    this.#calls.add(call);
  }

  async #handle({ message, line }: QueuedRequest): Promise<void> {
    const controller = new AbortController();
    this.#running.set(controller, JSON.stringify(message.id));
    try {
      const { signal } = controller;
      const request = new Request("http://127.0.0.1/mcp", {
        method: "POST",
        headers: headersOf(message, this.#client.token),
        body: line,
        signal,
      });
      const response = await this.#serve(request);
      for await (const text of messagesOf(response)) {
        if (signal.aborted) return;
        await this.#write(withId(text, message.id));
      }
    } catch {
      // Without an error message, the client would wait for the response.
      if (!controller.signal.aborted) await this.#writeError(message, -32_603, "the response was interrupted");
    } finally {
      // Aborting removes the listener that the request added to the signal.
      controller.abort();
      this.#running.delete(controller);
    }
  }

  #cancel({ params }: StdioMessage): void {
    if (params?.requestId === undefined) return;
    const key = JSON.stringify(params.requestId);
    const running = [...this.#running].filter(([, id]) => id === key);
    for (const [controller] of running) controller.abort();
    if (running.length > 0) return;
    const at = this.#queue.findIndex(({ message }) => JSON.stringify(message.id) === key);
    const [removed] = at < 0 ? [] : this.#queue.splice(at, 1);
    this.#queuedLength -= removed?.line.length ?? 0;
  }

  /** Responds with an error. Does not throw if the client has closed its end. */
  async #writeError({ id }: StdioMessage, code: number, message: string): Promise<void> {
    if (!isId(id)) return;
    await this.#write(JSON.stringify({ jsonrpc: "2.0", id, error: { code, message } })).catch(() => undefined);
  }

  async #write(text: string): Promise<void> {
    const { output } = this.#client;
    if (output.write(`${text}\n`)) return;
    const { signal } = this.#closed;
    this.#drained ??= once(output, "drain", { signal }).finally(() => (this.#drained = undefined));
    await this.#drained;
  }

  async #flush(): Promise<void> {
    const { signal } = this.#closed;
    if (signal.aborted) return;
    const written = new Promise((resolve) => this.#client.output.write("", resolve));
    await Promise.race([written, once(signal, "abort")]);
  }
}

function parse(line: string): StdioMessage {
  try {
    const message: StdioMessage | null = JSON.parse(line);
    return message ?? {};
  } catch {
    // The gateway reports the syntax error in the line.
    return {};
  }
}

/** Returns the header fields that the HTTP transport requires, from the values in a message. */
function headersOf({ method, params }: StdioMessage, token: string | undefined): Headers {
  const headers = new Headers({ "content-type": "application/json" });
  if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
  const { name: tool, _meta: meta } = params ?? {};
  const values = {
    "mcp-protocol-version": meta?.["io.modelcontextprotocol/protocolVersion"],
    "mcp-method": method,
    "mcp-name": tool,
  };
  for (const [name, value] of Object.entries(values)) {
    if (typeof value === "string") headers.set(name, encodeValue(value));
  }
  return headers;
}

/** Encodes a header value (MCP, "Value Encoding"). */
function encodeValue(value: string): string {
  const isPlain = /^[\x21-\x7e]{1,1024}$/.test(value) && !value.startsWith("=?base64?");
  return isPlain ? value : `=?base64?${Buffer.from(value.slice(0, 1024)).toString("base64")}?=`;
}

/** Adds the request id to an error response that lacks it because the gateway did not read the body. */
function withId(text: string, id: unknown): string {
  return isId(id) && text.startsWith('{"jsonrpc":"2.0","error":')
    ? `{"id":${JSON.stringify(id)},${text.slice(1)}`
    : text;
}

function isId(id: unknown): id is string | number {
  return typeof id === "string" || typeof id === "number";
}

/** Yields the messages in a response's event stream, or its body. */
async function* messagesOf(response: Response): AsyncGenerator<string, void> {
  const { headers, body } = response;
  if (body === null || headers.get("content-type") !== "text/event-stream") {
    const message = await response.text();
    if (message !== "") yield message;
    return;
  }
  let text = "";
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    text += piece;
    const events = text.split("\n\n");
    text = events.pop() ?? "";
    // Events without data are heartbeats.
    for (const event of events) if (event.startsWith("data: ")) yield event.slice("data: ".length);
  }
}

/**
 * Yields a stream's lines. The last line may lack its line feed, unless the stream is destroyed. A line that is too
 * long is reported, and ends the iteration.
 */
async function* linesOf(input: Readable, err: StdioClient["err"]): AsyncGenerator<string, void> {
  let rest = "";
  input.setEncoding("utf8");
  try {
    for await (const piece of input) {
      const lines = `${rest}${String(piece)}`.split("\n");
      rest = lines.pop() ?? "";
      yield* lines;
      if (rest.length <= lineLengthMax) continue;
      err(`cannot read a message of the MCP client: a line must be at most ${lineLengthMax} characters`);
      return;
    }
  } catch {
    // The stream was destroyed. A stop was requested, or the client has closed the output.
    return;
  }
  yield rest;
}
