import type { Message } from "@bufbuild/protobuf";
import type { ConnectError, UnaryResponse } from "@connectrpc/connect";
import type { HeaderFields } from "../carriers/index.ts";
import type { LazyHeaders } from "./lazy-headers.ts";

/** The protocol of a request. */
export type Protocol = "connect" | "grpc" | "grpc-web" | "rest";

/**
 * Reads a call from its exchange. Each protocol has classes of this shape: to know one is to know the others.
 *
 * The header is read in the constructor. A mistake in it is kept as `problem` instead of thrown, because the answer to
 * it depends on the rest of the header.
 */
export interface CallProtocol {
  readonly protocol: Protocol;
  /** The client's deadline in milliseconds from now; `undefined` without one. */
  readonly timeoutMs: number | undefined;
  /** The error for which the call cannot be served, known before the body is read; `undefined` if there is none. */
  readonly problem: unknown;
  /** The message, if it was read from the header alone; then no body is read. */
  readonly message?: Message | undefined;
  /** Whether a body is left unread, because it means nothing. */
  readonly ignoresBody?: boolean;
  /** The longest body that can hold an acceptable message, if the client sends only one. */
  readonly bodyLimitBytes: number;
  /** Whether no program gets to see the bytes of messages, because they are passed on. */
  readonly isUnseen?: boolean;
  /** The request header that the handler sees. */
  readonly requestHeader: LazyHeaders;
  /** The response header and trailer that the handler sees, and may add to. */
  readonly responseHeader: LazyHeaders;
  readonly responseTrailer: LazyHeaders;

  /** Returns the length that a body announces in its first piece; 0 if it announces none. */
  announcedBytes?(firstPiece: Uint8Array): number;

  /** Reads the message of a client that sends only one. Returns a promise only if something must be decompressed. */
  readMessage(body: Uint8Array): Message | Promise<Message>;

  /** Sends what is answered next without a content coding: that of an answer has failed, or takes too long. */
  giveUpCoding?(): void;

  /** Frees what is held for an answer that has begun and will not end. */
  release?(): void;
}

/** What is written of a response. */
export type ResponseParts = Pick<UnaryResponse, "message" | "header" | "trailer">;

/** Reads one unary call from its exchange and answers it. */
export interface UnaryProtocol extends CallProtocol {
  /** Answers with a message. Throws, before anything is sent, if it cannot be written. */
  writeMessage(response: ResponseParts): void | Promise<void>;

  /**
   * Answers with an error, and with the header and trailer as the handler left them. May be called once more, after
   * {@link giveUpCoding}, while its promise has not resolved.
   */
  writeError(error: ConnectError): void | Promise<void>;
}

/** The messages of a client that streams. */
export interface RequestMessages extends AsyncIterable<Message> {
  /** Frees what reading them holds, because the call has ended. Its handler may never read on. */
  close?(): void;
}

/**
 * Reads one streaming call from its exchange and answers it.
 *
 * Answered by {@link begin}, {@link write} … and {@link end}, or by {@link answer} alone.
 */
export interface StreamProtocol extends CallProtocol {
  /** Bytes to send when the call has sent nothing for a while; `undefined` for none. */
  readonly heartbeat?: Uint8Array | undefined;
  /** Whether the header of a server stream is sent alone when its first message is long in coming. */
  readonly beginsQuietly?: boolean;
  /** Whether the answer is its header section alone, as it is to HEAD (RFC 9110 §9.3.2). */
  readonly headOnly?: boolean;

  /** Reads the messages of a client that streams, as they arrive. */
  readMessages(): RequestMessages;

  /** Encodes a message for the body. Throws if it cannot be written. */
  encode(message: Message): Uint8Array | Promise<Uint8Array>;

  /** Returns the header section of the answer, with what the handler has set. */
  headerToSend(header: Headers): HeaderFields;

  /** Sends the header section, before the first messages. */
  begin(header: HeaderFields): void;

  /**
   * Sends encoded messages. Returns a promise if the client must first take what was sent; it resolves when more may be
   * sent, or the client has gone away, and rejects if something cannot be compressed.
   */
  write(bytes: Uint8Array): void | Promise<void>;

  /**
   * Ends the answer, with an error or as a success. Returns a promise if the end must first be compressed; like
   * {@link answer}, it rejects if that fails, and then the client still waits.
   */
  end(trailer: Headers, error: ConnectError | undefined): void | Promise<void>;

  /** Answers in one go. May be called again, with an error, while its promise has not resolved. */
  answer(
    header: HeaderFields,
    bytes: Uint8Array,
    trailer: Headers,
    error: ConnectError | undefined,
  ): void | Promise<void>;
}
