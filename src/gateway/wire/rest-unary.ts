import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError, type UnaryResponse } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import {
  errorWithHttpStatus,
  httpStatusOf,
  negotiateContentCoding,
  readContentCodings,
  readRestTimeout,
  toRestFields,
} from "../rest/index.ts";
import type { ErrorWriter } from "./error-writer.ts";
import type { Exchange } from "./exchange.ts";
import { FieldReader, type HeaderFields, LazyHeaders, readField } from "./header-fields.ts";
import type { Match } from "./match.ts";
import { metadataFields } from "./metadata-fields.ts";
import type { UnaryWire } from "./unary-wire.ts";

/** A unary call that came by its `google.api.http` rule. */
export class RestUnary implements UnaryWire {
  readonly protocol = "rest";
  readonly timeoutMs: number | undefined;
  readonly problem: ConnectError | undefined;
  readonly bodyLimitBytes: number;
  readonly headerFields: HeaderFields = none;
  readonly trailerFields: HeaderFields = none;
  readonly #exchange: Exchange;
  readonly #match: RestMatched;
  readonly #writeErrorRecord: ErrorWriter;
  readonly #requestCoding: Compression | undefined;

  constructor(exchange: Exchange, match: RestMatched, writeErrorRecord: ErrorWriter) {
    const { readMaxBytes, maxTimeoutMs } = match.procedure.options;
    this.#exchange = exchange;
    this.#match = match;
    this.#writeErrorRecord = writeErrorRecord;
    this.bodyLimitBytes = readMaxBytes;
    const timeout = readRestTimeout(new FieldReader(exchange.fields));
    this.timeoutMs = timeout.timeoutMs;
    this.problem = timeout.error;
    if (timeout.timeoutMs !== undefined && timeout.timeoutMs > maxTimeoutMs) {
      this.problem = new ConnectError(`the timeout must not exceed ${maxTimeoutMs} ms`, Code.InvalidArgument);
    }
    if (exchange.bodyEmpty) return;
    const encoding = readField(exchange.fields, "content-encoding");
    const codings = readContentCodings(encoding, this.#available());
    this.#requestCoding = this.#compression(codings?.[0]);
    if (codings === undefined) {
      const message = `the content encoding must be one of ${this.#available().join(", ")}`;
      this.problem ??= errorWithHttpStatus(message, Code.InvalidArgument, 415);
    }
  }

  readMessage(body: Uint8Array): Message | Promise<Message> {
    const { binding, captures, query } = this.#match;
    const contentType = readField(this.#exchange.fields, "content-type");
    const decode = (plain: Uint8Array): Message => binding.decode({ captures, query, contentType, body: plain });
    if (this.#requestCoding === undefined) return decode(body);
    return this.#requestCoding.decompress(body, this.bodyLimitBytes).then(decode);
  }

  writeMessage({ message, header, trailer }: UnaryResponse): void | Promise<void> {
    const { httpStatus, contentType, body } = this.#match.binding.encode(message);
    const own: HeaderFields = contentType === undefined ? none : ["content-type", contentType];
    const untouched = isUntouched(header) && isUntouched(trailer);
    return this.#answer(httpStatus, untouched ? own : [...own, ...toRestFields(header, trailer)], body);
  }

  writeError(error: ConnectError, header: LazyHeaders, trailer: LazyHeaders): void | Promise<void> {
    const failure = { httpStatus: httpStatusOf(error), procedure: this.#match.procedure.name };
    const record = this.#writeErrorRecord(error, failure);
    const metadata = isUntouched(header) && isUntouched(trailer) ? none : toRestFields(header, trailer);
    const fields = ["content-type", record.contentType, ...metadata, ...metadataFields(error)];
    return this.#answer(record.httpStatus, fields, record.body);
  }

  #answer(httpStatus: number, fields: HeaderFields, body: Uint8Array | undefined): void | Promise<void> {
    if (body === undefined || body.byteLength < this.#match.procedure.options.compressMinBytes) {
      return this.#exchange.answer(httpStatus, fields, body);
    }
    // RFC 9110 §12.5.5: caches must know that the coding depends on what the client accepts.
    const varying = [...fields, "vary", "accept-encoding"];
    const accepted = readField(this.#exchange.fields, "accept-encoding");
    const coding = this.#compression(negotiateContentCoding(accepted, this.#available()));
    if (coding === undefined) return this.#exchange.answer(httpStatus, varying, body);
    return coding
      .compress(body)
      .then((packed) => this.#exchange.answer(httpStatus, [...varying, "content-encoding", coding.name], packed));
  }

  #available(): string[] {
    return this.#match.procedure.options.acceptCompression.map((compression) => compression.name);
  }

  #compression(name: string | undefined): Compression | undefined {
    return this.#match.procedure.options.acceptCompression.find((compression) => compression.name === name);
  }
}

const none: HeaderFields = Object.freeze([]);

type RestMatched = Extract<Match, { kind: "rest" }>;

function isUntouched(headers: Headers): boolean {
  return headers instanceof LazyHeaders && headers.pristine;
}
