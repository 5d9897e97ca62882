import { type Exchange, planBody } from "@plantstore/http";
import { type ErrorRecordWriter, httpStatusOf, type RestBinding } from "./rules/index.ts";
import type { Protocol, ProtocolParts, StreamTarget, StreamWire, UnaryTarget, UnaryWire } from "../protocol.ts";
import type { Rpc, StreamRpc, UnaryRpc } from "../rpc.ts";
import { RestByteStreamWire } from "./byte-stream-wire.ts";
import { RestClientStreamWire } from "./client-stream-wire.ts";
import { toErrorResponse } from "./error-response.ts";
import type { MatchedRule, RestRule } from "./matched-rule.ts";
import { RestMessageStreamWire } from "./message-stream-wire.ts";
import { createRepresentations } from "./representation.ts";
import { RestUnaryWire } from "./unary-wire.ts";

/** Creates the REST protocol, which the `google.api.http` rules of RPCs define. */
export function createRest({ rpcs, restRoutes, writeErrorRecord }: ProtocolParts): Protocol {
  const byName = new Map(rpcs.map((rpc) => [rpc.name, rpc]));
  const rules = new Map<RestBinding, UnaryRule | StreamRule>();
  for (const binding of restRoutes.bindings) {
    const rpc = byName.get(binding.procedure);
    if (rpc !== undefined) rules.set(binding, createRule(rpc, binding, writeErrorRecord));
  }
  const rest: Protocol = {
    name: "rest",
    hasHttpStatus: true,
    // REST requests reach an RPC only by the paths in the RPC's rules.
    targetsOf: () => [],
    find({ httpMethod, literalsAsSent }, path, query) {
      const found = restRoutes.match(httpMethod, path, literalsAsSent);
      if (found.kind !== "binding") return found;
      const rule = rules.get(found.binding);
      if (rule === undefined) return undefined;
      if (rule.kind === "unary") return new RestUnaryTarget(rest, rule, found.captures, query);
      return new RestStreamTarget(rest, rule, found.captures, query);
    },
    handlesUnmatched: () => true,
    refuse(exchange, { error, fields, rpc }) {
      const failure = { httpStatus: httpStatusOf(error), procedure: rpc?.name };
      const response = toErrorResponse(writeErrorRecord, error, failure, fields, false);
      exchange.respond(response.httpStatus, response.fields, response.body);
    },
  };
  return rest;
}

interface UnaryRule extends RestRule {
  readonly kind: "unary";
  readonly rpc: UnaryRpc;
}

interface StreamRule extends RestRule {
  readonly kind: "stream";
  readonly rpc: StreamRpc;
}

function createRule(rpc: Rpc, binding: RestBinding, writeErrorRecord: ErrorRecordWriter): UnaryRule | StreamRule {
  const body = binding.bodyFormat.kind === "ignored" ? undefined : planBody(rpc.options.readMaxBytes);
  const common = { binding, body, writeErrorRecord };
  if (rpc.kind === "stream") return { kind: "stream", rpc, ...common, representations: undefined };
  return { kind: "unary", rpc, ...common, representations: createRepresentations(rpc, binding, writeErrorRecord) };
}

abstract class RestTarget<Rule extends RestRule> implements MatchedRule {
  readonly protocol: Protocol;
  readonly rpc: Rule["rpc"];
  readonly rule: Rule;
  readonly captures: readonly string[];
  readonly query: string;

  constructor(protocol: Protocol, rule: Rule, captures: readonly string[], query: string) {
    this.protocol = protocol;
    this.rpc = rule.rpc;
    this.rule = rule;
    this.captures = captures;
    this.query = query;
  }

  get pathTemplate(): string {
    return this.rule.binding.pattern.pathTemplate;
  }

  needsBody(contentType: string | null): boolean {
    const { binding, body } = this.rule;
    return body !== undefined && binding.bodyProblem(contentType, false) === undefined;
  }
}

class RestUnaryTarget extends RestTarget<UnaryRule> implements UnaryTarget {
  readonly kind = "unary";

  open(exchange: Exchange): UnaryWire {
    return new RestUnaryWire(exchange, this);
  }
}

class RestStreamTarget extends RestTarget<StreamRule> implements StreamTarget {
  readonly kind = "stream";

  open(exchange: Exchange): StreamWire {
    const { rpc, binding } = this.rule;
    if (rpc.method.methodKind === "client_streaming") return new RestClientStreamWire(exchange, this);
    const Wire = binding.toRaw === undefined ? RestMessageStreamWire : RestByteStreamWire;
    return new Wire(exchange, this);
  }
}
