import type { Message } from "@bufbuild/protobuf";
import type { ConnectError, UnaryResponse } from "@connectrpc/connect";
import type { Protocol } from "./admit.ts";
import type { HeaderFields, LazyHeaders } from "./header-fields.ts";

/**
 * How one unary call is read from its exchange and answered on it. Each protocol has a class of this
 * shape, so whoever knows one of them knows the others.
 *
 * What the header says is read when the object is made. A mistake in it is kept as `problem` rather
 * than thrown, because the answer to it needs the very things the header tells.
 */
export interface UnaryWire {
  readonly protocol: Protocol;
  /** The client's deadline in milliseconds from now; `undefined` without one. */
  readonly timeoutMs: number | undefined;
  /** Why the call cannot be served, if so: known before the body is read. */
  readonly problem: ConnectError | undefined;
  /** The most bytes of body worth reading. */
  readonly bodyLimitBytes: number;
  /** What the handler finds in its response header and trailer before it adds to them. */
  readonly headerFields: HeaderFields;
  readonly trailerFields: HeaderFields;

  /** Takes the message out of the body. A promise only where something must be decompressed. */
  readMessage(body: Uint8Array): Message | Promise<Message>;

  /** Answers with a message. Throws, before anything is sent, if it cannot be written. */
  writeMessage(response: UnaryResponse): void | Promise<void>;

  /** Answers with an error. */
  writeError(error: ConnectError, header: LazyHeaders, trailer: LazyHeaders): void | Promise<void>;
}
