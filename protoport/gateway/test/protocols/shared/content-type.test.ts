import type { ConnectRouter } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { CommonHeaderFields, readHeaderField, runSteps } from "../../../src/http/exchange/index.ts";
import { FetchExchange } from "../../../src/http/fetch-exchange.ts";
import { createRpcs } from "../../../src/serve/create-rpcs.ts";
import { connect } from "../../../src/protocols/connect/protocol.ts";
import { grpc } from "../../../src/protocols/grpc/protocol.ts";
import type { CallTarget } from "../../../src/protocols/protocol.ts";
import { grpcWeb } from "../../../src/protocols/grpc-web/protocol.ts";
import { RpcPath } from "../../../src/serve/routes.ts";
import { jsonContentTypes, notJsonContentTypes } from "../../../../testing/src/gateway/json-content-types.ts";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";

const protocols = [grpcWeb, grpc, connect];
const routes = (router: ConnectRouter): ConnectRouter => router.service(GreenhouseService, {});
const noOptions = (): object => ({});
const { rpcs } = runSteps(createRpcs(routes, {}, noOptions, {}));
const known = rpcs.map((rpc) => new RpcPath(rpc, protocols));

/** Returns the calls that a content type selects at the paths of all RPCs. */
const find = (contentType: string): CallTarget[] => known.flatMap((rpcPath) => rpcPath.find(contentType) ?? []);

/** Returns the content type in the response to a call, which contains the format's name. */
function responseTypeOf(target: CallTarget): string | null {
  const exchange = new FetchExchange(new Request("http://x/", { method: "POST" }));
  const type = target.open(exchange).responseHeader.get("content-type");
  exchange.handOver();
  return type;
}

const anyKind = ["stream", "unary"] as const;

test.each(
  // oxfmt-ignore
  [
      { value: "application/proto", protocol: "connect", kinds: ["unary"], type: "application/proto" },
      ...jsonContentTypes.map((value) => ({ value, protocol: "connect", kinds: ["unary"], type: "application/json" })),
      { value: "application/proto; version=1", protocol: "connect", kinds: ["unary"], type: "application/proto" },
      { value: "application/connect+proto", protocol: "connect", kinds: ["stream"], type: "application/connect+proto" },
      { value: "application/connect+json; charset=utf8", protocol: "connect", kinds: ["stream"],
        type: "application/connect+json" },
      { value: "application/grpc", protocol: "grpc", kinds: anyKind, type: "application/grpc+proto" },
      { value: "application/grpc ;version=1", protocol: "grpc", kinds: anyKind, type: "application/grpc+proto" },
      { value: "application/grpc+proto", protocol: "grpc", kinds: anyKind, type: "application/grpc+proto" },
      { value: "application/grpc+json", protocol: "grpc", kinds: anyKind, type: "application/grpc+json" },
      { value: "application/grpc-web", protocol: "grpc-web", kinds: anyKind, type: "application/grpc-web+proto" },
      { value: "application/grpc-web+json", protocol: "grpc-web", kinds: anyKind, type: "application/grpc-web+json" },
      { value: "application/grpc-web-text", protocol: "grpc-web", kinds: anyKind,
        type: "application/grpc-web-text+proto" },
      { value: "application/GRPC-web-text+json", protocol: "grpc-web", kinds: anyKind,
        type: "application/grpc-web-text+json" },
    ],
)("an RPC's content type $value selects $protocol with $type responses", ({ value, protocol, kinds, type }) => {
  const targets = find(value);
  expect(new Set(targets.map((target) => target.protocol.name))).toEqual(new Set([protocol]));
  expect(new Set(targets.map(({ kind }) => kind))).toEqual(new Set(kinds));
  expect(new Set(targets.map(responseTypeOf))).toEqual(new Set([type]));
});

// oxfmt-ignore
test.each([
  "", "text/plain", ...notJsonContentTypes, "application/proto; charset=utf-8", "application/grpc; charset=utf-8",
  "application/grpc+unheard-of", "application/grpc+protobuf", "application/grpc-websocket", "constructor",
  "__proto__",
])("an RPC's content type %j is not supported", (value) => expect(find(value)).toEqual([]));

test.each([
  ["grpc", "the content type application/grpc", "application/grpc", undefined],
  ["grpc", "the content type application/grpc+unheard-of", "application/grpc+unheard-of", undefined],
  ["grpc-web", "the content type Application/GRPC-Web+proto", "Application/GRPC-Web+proto", undefined],
  ["connect", "the content type application/connect+unheard-of", "application/connect+unheard-of", undefined],
  ["connect", "the content type application/json and Connect-Protocol-Version", "application/json", true],
  ["rest", "the content type application/json alone", "application/json", undefined],
  ["rest", "an empty content type", "", undefined],
])("the protocol of an unmatched request is %s for %s", (want, _name, contentType, hasConnectVersion = false) => {
  const fields = ["content-type", contentType, ...(hasConnectVersion ? ["connect-protocol-version", "1"] : [])];
  const get = (name: string): string | null => readHeaderField(fields, name);
  const head = { httpMethod: "POST", target: "/", common: new CommonHeaderFields(fields), get };
  expect(protocols.find((protocol) => protocol.handlesUnmatched(head))?.name ?? "rest").toBe(want);
});
