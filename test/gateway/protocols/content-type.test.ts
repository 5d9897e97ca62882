import { describe, expect, test } from "vitest";
import { callerProtocol, readRpcContentType } from "../../../src/gateway/protocols/content-type.ts";

describe("readRpcContentType", () => {
  test.each([
    ["application/proto", { protocol: "connect", format: "binary", stream: false, text: false }],
    ["application/json", { protocol: "connect", format: "json", stream: false, text: false }],
    ["Application/JSON", { protocol: "connect", format: "json", stream: false, text: false }],
    ["application/json; charset=utf-8", { protocol: "connect", format: "json", stream: false, text: false }],
    ["application/json;charset=UTF-8", { protocol: "connect", format: "json", stream: false, text: false }],
    ['application/json; charset="utf-8"', { protocol: "connect", format: "json", stream: false, text: false }],
    ["application/connect+proto", { protocol: "connect", format: "binary", stream: true, text: false }],
    ["application/connect+json; charset=utf8", { protocol: "connect", format: "json", stream: true, text: false }],
    ["application/grpc", { protocol: "grpc", format: "binary", stream: false, text: false }],
    ["application/grpc+proto", { protocol: "grpc", format: "binary", stream: false, text: false }],
    ["application/grpc+json", { protocol: "grpc", format: "json", stream: false, text: false }],
    ["application/grpc-web", { protocol: "grpc-web", format: "binary", stream: false, text: false }],
    ["application/grpc-web+json", { protocol: "grpc-web", format: "json", stream: false, text: false }],
    ["application/grpc-web-text", { protocol: "grpc-web", format: "binary", stream: false, text: true }],
    ["application/GRPC-web-text+json", { protocol: "grpc-web", format: "json", stream: false, text: true }],
  ])("knows %s", (value, want) => {
    expect(readRpcContentType(value)).toEqual(want);
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
    expect(readRpcContentType(value)).toBeUndefined();
  });
});

describe("callerProtocol", () => {
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
      expect(callerProtocol(contentType, hasConnectVersion)).toBe(want);
    },
  );
});
