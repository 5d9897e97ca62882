import { describe, expect, test } from "vitest";
import { CommonHeaderFields } from "../../../src/gateway/carriers/index.ts";
import { createRpcs } from "../../../src/gateway/calls/create-rpcs.ts";
import { connect } from "../../../src/gateway/protocols/connect/protocol.ts";
import { grpc } from "../../../src/gateway/protocols/grpc/protocol.ts";
import { grpcWeb } from "../../../src/gateway/protocols/grpc-web/protocol.ts";
import { RpcPath } from "../../../src/gateway/calls/routes.ts";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";

const protocols = [grpcWeb, grpc, connect];
const { rpcs } = createRpcs(
  (router) => router.service(GreenhouseService, {}),
  {},
  () => ({}),
  {},
);
const known = rpcs.map((rpc) => new RpcPath(rpc, protocols));

/** The protocol and the kind of the call that a content type stands for, at the path of some RPC. */
function find(contentType: string): string | undefined {
  const [found] = known.flatMap((targets) => targets.find(contentType) ?? []);
  return found && found.protocol.name;
}

describe("the targets of an RPC", () => {
  test.each([
    ["application/proto", "connect"],
    ["application/json", "connect"],
    ["Application/JSON", "connect"],
    ["application/json; charset=utf-8", "connect"],
    ["application/json;charset=UTF-8", "connect"],
    ['application/json; charset="utf-8"', "connect"],
    ["application/connect+proto", "connect"],
    ["application/connect+json; charset=utf8", "connect"],
    ["application/grpc", "grpc"],
    ["application/grpc+proto", "grpc"],
    ["application/grpc+json", "grpc"],
    ["application/grpc-web", "grpc-web"],
    ["application/grpc-web+json", "grpc-web"],
    ["application/grpc-web-text", "grpc-web"],
    ["application/GRPC-web-text+json", "grpc-web"],
  ])("knows %s", (value, want) => {
    expect(find(value)).toBe(want);
  });

  test.each([
    "",
    "text/plain",
    "application/json; charset=utf-16",
    "application/json; charset=utf-8; charset=latin1",
    "application/proto; charset=utf-8",
    "application/json, application/json",
    "application/jsonp",
    "application/grpc+xml",
    "application/grpc+protobuf",
    "application/grpc-websocket",
    "constructor",
    "__proto__",
  ])("does not know %j", (value) => {
    expect(find(value)).toBeUndefined();
  });
});

describe("the protocol of a request that matches nothing", () => {
  test.each([
    { contentType: "application/grpc", hasConnectVersion: false, want: "grpc" },
    { contentType: "application/grpc+unheard-of", hasConnectVersion: false, want: "grpc" },
    { contentType: "Application/GRPC-Web+proto", hasConnectVersion: false, want: "grpc-web" },
    { contentType: "application/connect+xml", hasConnectVersion: false, want: "connect" },
    { contentType: "application/json", hasConnectVersion: true, want: "connect" },
    { contentType: "application/json", hasConnectVersion: false, want: "rest" },
    { contentType: "", hasConnectVersion: false, want: "rest" },
  ])(
    "takes $contentType with a version of Connect: $hasConnectVersion for $want",
    ({ contentType, hasConnectVersion, want }) => {
      const fields = ["content-type", contentType, ...(hasConnectVersion ? ["connect-protocol-version", "1"] : [])];
      const head = { httpMethod: "POST", target: "/", common: new CommonHeaderFields(fields) };
      expect(protocols.find((protocol) => protocol.claims(head))?.name ?? "rest").toBe(want);
    },
  );
});
