import type { Exchange } from "../../carriers/index.ts";
import type { ErrorRecordWriter, RestBinding } from "../../rest/index.ts";
import type { Procedure, StreamProcedure, UnaryProcedure } from "../procedure.ts";
import type { Protocol, ProtocolParts, StreamTarget, StreamWire, UnaryTarget, UnaryWire } from "../protocol.ts";
import { restErrorHeader } from "./response-header.ts";
import { RestByteStream } from "./rest-byte-stream.ts";
import { RestClientStream } from "./rest-client-stream.ts";
import { RestMessageStream } from "./rest-message-stream.ts";
import type { RestSelection } from "./rest-target.ts";
import { RestUnary } from "./rest-unary.ts";

/** REST, as the `google.api.http` rules of RPCs describe it. */
export function createRest({ procedures, restRoutes, writeErrorRecord }: ProtocolParts): Protocol {
  const byName = new Map(procedures.map((procedure) => [procedure.name, procedure]));
  const procedureOf = new Map<RestBinding, Procedure>();
  for (const binding of restRoutes.bindings) {
    const procedure = byName.get(binding.procedure);
    if (procedure !== undefined) procedureOf.set(binding, procedure);
  }
  const rest: Protocol = {
    name: "rest",
    hasHttpStatus: true,
    // Only rules make an RPC a resource.
    targetsOf: () => [],
    find({ httpMethod }, path, query) {
      const found = restRoutes.match(httpMethod, path);
      if (found.kind !== "binding") return found;
      const { binding, captures } = found;
      const procedure = procedureOf.get(binding);
      if (procedure === undefined) return undefined;
      const selection = { procedure, binding, captures, query };
      if (procedure.kind === "unary") return new RestUnaryTarget(rest, procedure, selection, writeErrorRecord);
      return new RestStreamTarget(rest, procedure, selection, writeErrorRecord);
    },
    claims: () => true,
    refuse(exchange, { error, httpStatus, fields, procedure }) {
      const record = writeErrorRecord(error, { httpStatus, procedure: procedure?.name });
      exchange.answer(record.httpStatus, restErrorHeader(error, record.contentType, fields), record.body);
    },
  };
  return rest;
}

/** An RPC that a REST request asks for: the rule that matched, with what the path captured. */
abstract class RestTarget<P extends Procedure> {
  readonly protocol: Protocol;
  readonly procedure: P;
  readonly binding: RestBinding;
  protected readonly selection: RestSelection;
  protected readonly writeErrorRecord: ErrorRecordWriter;

  constructor(protocol: Protocol, procedure: P, selection: RestSelection, writeErrorRecord: ErrorRecordWriter) {
    this.protocol = protocol;
    this.procedure = procedure;
    this.binding = selection.binding;
    this.selection = selection;
    this.writeErrorRecord = writeErrorRecord;
  }

  get pathTemplate(): string {
    return this.binding.pattern.pathTemplate;
  }

  needsBody(contentType: string | null): boolean {
    const { bodyFormat } = this.binding;
    return bodyFormat.kind !== "ignored" && this.binding.bodyProblem(contentType, false) === undefined;
  }
}

class RestUnaryTarget extends RestTarget<UnaryProcedure> implements UnaryTarget {
  readonly kind = "unary";

  open(exchange: Exchange): UnaryWire {
    return new RestUnary(exchange, this.selection, this.writeErrorRecord);
  }
}

class RestStreamTarget extends RestTarget<StreamProcedure> implements StreamTarget {
  readonly kind = "stream";

  open(exchange: Exchange): StreamWire {
    const isAnsweredOnce = this.procedure.method.methodKind === "client_streaming";
    if (isAnsweredOnce) return new RestClientStream(exchange, this.selection, this.writeErrorRecord);
    const RestAnswers = this.binding.toRaw === undefined ? RestMessageStream : RestByteStream;
    return new RestAnswers(exchange, this.selection, this.writeErrorRecord);
  }
}
