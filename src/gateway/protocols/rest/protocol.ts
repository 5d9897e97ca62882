import type { Exchange } from "../../carriers/index.ts";
import type { ErrorRecordWriter, RestBinding } from "../../rest/index.ts";
import type { Rpc, StreamRpc, UnaryRpc } from "../rpc.ts";
import type { Protocol, ProtocolParts, StreamTarget, StreamWire, UnaryTarget, UnaryWire } from "../protocol.ts";
import { restErrorHeader } from "./response-header.ts";
import { RestByteStreamWire } from "./byte-stream-wire.ts";
import { RestClientStreamWire } from "./client-stream-wire.ts";
import { RestMessageStreamWire } from "./message-stream-wire.ts";
import type { RestSelection } from "./selection.ts";
import { RestUnaryWire } from "./unary-wire.ts";

/** REST, as the `google.api.http` rules of RPCs describe it. */
export function createRest({ rpcs, restRoutes, writeErrorRecord }: ProtocolParts): Protocol {
  const byName = new Map(rpcs.map((rpc) => [rpc.name, rpc]));
  const procedureOf = new Map<RestBinding, Rpc>();
  for (const binding of restRoutes.bindings) {
    const rpc = byName.get(binding.procedure);
    if (rpc !== undefined) procedureOf.set(binding, rpc);
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
      const rpc = procedureOf.get(binding);
      if (rpc === undefined) return undefined;
      const selection = { rpc, binding, captures, query };
      if (rpc.kind === "unary") return new RestUnaryTarget(rest, rpc, selection, writeErrorRecord);
      return new RestStreamTarget(rest, rpc, selection, writeErrorRecord);
    },
    claims: () => true,
    refuse(exchange, { error, httpStatus, fields, rpc }) {
      const record = writeErrorRecord(error, { httpStatus, procedure: rpc?.name });
      exchange.answer(record.httpStatus, restErrorHeader(error, record.contentType, fields), record.body);
    },
  };
  return rest;
}

/** An RPC that a REST request asks for: the rule that matched, with what the path captured. */
abstract class RestTarget<P extends Rpc> {
  readonly protocol: Protocol;
  readonly rpc: P;
  readonly binding: RestBinding;
  protected readonly selection: RestSelection;
  protected readonly writeErrorRecord: ErrorRecordWriter;

  constructor(protocol: Protocol, rpc: P, selection: RestSelection, writeErrorRecord: ErrorRecordWriter) {
    this.protocol = protocol;
    this.rpc = rpc;
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

class RestUnaryTarget extends RestTarget<UnaryRpc> implements UnaryTarget {
  readonly kind = "unary";

  open(exchange: Exchange): UnaryWire {
    return new RestUnaryWire(exchange, this.selection, this.writeErrorRecord);
  }
}

class RestStreamTarget extends RestTarget<StreamRpc> implements StreamTarget {
  readonly kind = "stream";

  open(exchange: Exchange): StreamWire {
    const isAnsweredOnce = this.rpc.method.methodKind === "client_streaming";
    if (isAnsweredOnce) return new RestClientStreamWire(exchange, this.selection, this.writeErrorRecord);
    const RestAnswers = this.binding.toRaw === undefined ? RestMessageStreamWire : RestByteStreamWire;
    return new RestAnswers(exchange, this.selection, this.writeErrorRecord);
  }
}
