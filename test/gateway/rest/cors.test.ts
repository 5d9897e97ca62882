import { describe, expect, test } from "vitest";
import { createCors } from "../../../src/gateway/rest/cors.ts";

function toObject(fields: readonly string[] | undefined): Record<string, string> | undefined {
  if (fields === undefined) return undefined;
  return Object.fromEntries(fields.flatMap((name, at) => (at % 2 === 0 ? [[name, fields[at + 1] ?? ""]] : [])));
}

const shop = "https://shop.example";
const listed = createCors({
  origins: [shop],
  allowedHeaders: ["X-Trace"],
  exposedHeaders: ["X-Cost"],
  maxAgeSeconds: 60,
});
const any = createCors({ origins: "*" });

describe("Cors.preflight()", () => {
  test("allows a listed origin what the protocols need, and what the configuration adds", () => {
    const fields = toObject(
      listed.preflight({ httpMethod: "OPTIONS", origin: shop, accessControlRequestMethod: "DELETE" }),
    );
    expect(fields).toMatchObject({
      "access-control-allow-origin": shop,
      "access-control-allow-methods": "DELETE, GET, HEAD, PATCH, POST, PUT",
      "access-control-max-age": "60",
      vary: "origin",
    });
    const allowed = fields?.["access-control-allow-headers"]?.toLowerCase().split(", ");
    for (const name of [
      "authorization",
      "content-type",
      "connect-protocol-version",
      "x-grpc-web",
      "grpc-timeout",
      "x-trace",
    ]) {
      expect(allowed).toContain(name);
    }
    expect(new Set(allowed).size).toBe(allowed?.length);
  });

  test("allows every origin where the configuration says so, and lets caches share the answer", () => {
    const fields = toObject(any.preflight({ httpMethod: "OPTIONS", origin: shop, accessControlRequestMethod: "GET" }));
    expect(fields).toMatchObject({ "access-control-allow-origin": "*", "access-control-max-age": "7200" });
    expect(fields).not.toHaveProperty("vary");
  });

  test.each([
    "https://evil.example",
    "null",
    "https://shop.example.evil",
    "https://SHOP.example",
    "http://shop.example",
    "",
  ])("allows the origin %j nothing", (origin) => {
    const fields = listed.preflight({ httpMethod: "OPTIONS", origin, accessControlRequestMethod: "GET" });
    expect(toObject(fields)).toEqual({ vary: "origin" });
  });

  test.each([
    { why: "another method", httpMethod: "GET", origin: shop, accessControlRequestMethod: "GET" },
    { why: "no origin", httpMethod: "OPTIONS", origin: null, accessControlRequestMethod: "GET" },
    { why: "no requested method", httpMethod: "OPTIONS", origin: shop, accessControlRequestMethod: null },
  ])("takes a request with $why for none", ({ httpMethod, origin, accessControlRequestMethod }) => {
    expect(listed.preflight({ httpMethod, origin, accessControlRequestMethod })).toBeUndefined();
  });
});

describe("Cors.responseFields()", () => {
  test("lets a listed origin read the challenge and the protocols' fields", () => {
    const fields = toObject(listed.responseFields(shop));
    expect(fields).toMatchObject({ "access-control-allow-origin": shop, vary: "origin" });
    const exposed = fields?.["access-control-expose-headers"]?.toLowerCase().split(", ");
    for (const name of ["www-authenticate", "retry-after", "grpc-status", "grpc-message", "x-cost"]) {
      expect(exposed).toContain(name);
    }
  });

  test("never allows credentials", () => {
    expect(toObject(any.responseFields(shop))).not.toHaveProperty("access-control-allow-credentials");
  });

  test.each([
    { origin: null, cors: listed, want: { vary: "origin" } },
    { origin: "https://evil.example", cors: listed, want: { vary: "origin" } },
    { origin: null, cors: any, want: {} },
  ])("gives the origin $origin nothing but what caches need", ({ origin, cors, want }) => {
    expect(toObject(cors.responseFields(origin))).toEqual(want);
  });
});
