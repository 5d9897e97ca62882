import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError, type UnaryResponse } from "@connectrpc/connect";
import { httpStatusOf } from "../rest/index.ts";
import type { ErrorWriter } from "./error-writer.ts";
import type { Exchange } from "./exchange.ts";
import { fieldsOf } from "./grpc-unary.ts";
import { type HeaderFields, type LazyHeaders, readField } from "./header-fields.ts";
import { metadataFields } from "./metadata-fields.ts";
import type { Match } from "./match.ts";
import type { UnaryWire } from "./unary-wire.ts";

/** A unary call that came by its `google.api.http` rule. */
export class RestUnary implements UnaryWire {
  readonly protocol = "rest";
  readonly timeoutMs = undefined;
  readonly problem: ConnectError | undefined;
  readonly bodyLimitBytes: number;
  readonly headerFields: HeaderFields = none;
  readonly trailerFields: HeaderFields = none;
  readonly #exchange: Exchange;
  readonly #match: RestMatched;
  readonly #writeErrorRecord: ErrorWriter;

  constructor(exchange: Exchange, match: RestMatched, writeErrorRecord: ErrorWriter) {
    this.#exchange = exchange;
    this.#match = match;
    this.#writeErrorRecord = writeErrorRecord;
    this.bodyLimitBytes = match.procedure.options.readMaxBytes;
    const encoding = exchange.bodyEmpty ? null : readField(exchange.fields, "content-encoding");
    if (encoding !== null && encoding !== "identity") {
      this.problem = new ConnectError(`the content encoding ${encoding} is not supported`, Code.InvalidArgument);
    }
  }

  readMessage(body: Uint8Array): Message {
    const { binding, captures, query } = this.#match;
    return binding.decode({ captures, query, contentType: readField(this.#exchange.fields, "content-type"), body });
  }

  writeMessage(response: UnaryResponse): void {
    const { httpStatus, contentType, body } = this.#match.binding.encode(response.message);
    const fields = contentType === undefined ? none : ["content-type", contentType];
    const header = fieldsOf(response.header, none);
    this.#exchange.answer(httpStatus, header.length === 0 ? fields : [...fields, ...header], body);
  }

  writeError(error: ConnectError, header: LazyHeaders): void {
    const failure = { httpStatus: httpStatusOf(error), procedure: this.#match.procedure.name };
    const record = this.#writeErrorRecord(error, failure);
    const fields = ["content-type", record.contentType, ...header.fields, ...metadataFields(error)];
    this.#exchange.answer(record.httpStatus, fields, record.body);
  }
}

const none: HeaderFields = [];

type RestMatched = Extract<Match, { kind: "rest" }>;
