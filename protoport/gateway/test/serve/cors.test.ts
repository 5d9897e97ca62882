import { describe, expect, test } from "vitest";
import { createCors } from "../../src/serve/cors.ts";

function toObject(fields: readonly string[] | undefined): Record<string, string> | undefined {
  if (fields === undefined) return undefined;
  return Object.fromEntries(fields.flatMap((name, at) => (at % 2 === 0 ? [[name, fields[at + 1] ?? ""]] : [])));
}

const shop = "https://shop.example";
const options = { origins: [shop], allowedHeaders: ["X-Trace"], exposedHeaders: ["X-Cost"], maxAgeSeconds: 60 };
const listed = createCors(options, ["DELETE", "PROPFIND", "GET", "DELETE"]);
const any = createCors({ origins: "*" }, []);

test.each(["https://a.example:8443", "http://[::1]:3000", "capacitor://localhost", "null"])(
  "createCors() accepts the origin %s",
  (origin) => {
    const fields = createCors({ origins: [origin] }, []).responseFields(origin);
    expect(toObject(fields)).toMatchObject({ "access-control-allow-origin": origin });
  },
);

test.each(["*", `${shop}/`, `${shop}:443`, "https://Shop.example", "shop.example", ""])(
  'createCors() refuses "%s" in an array, because no browser sends this origin',
  (origin) => {
    const message = `cors.origins must be "*", or an array with origins such as "${shop}", got "${origin}"`;
    expect(() => createCors({ origins: [shop, origin] }, [])).toThrow(message);
  },
);

test("createCors() refuses a string that is not *", () =>
  expect(() => Reflect.apply(createCors, undefined, [{ origins: shop }, []])).toThrow(`got "${shop}"`));

describe("Cors.preflight()", () => {
  test("allows the protocols' and the configured fields for a listed origin", () => {
    const preflight = { httpMethod: "OPTIONS", origin: shop, accessControlRequestMethod: "DELETE" };
    const fields = toObject(listed.preflight(preflight));
    const methods = "DELETE, GET, HEAD, POST, PROPFIND";
    expect(fields).toMatchObject({ "access-control-allow-origin": shop, "access-control-allow-methods": methods });
    expect(fields).toMatchObject({ "access-control-max-age": "60", vary: "origin" });
    const allowed = fields?.["access-control-allow-headers"]?.toLowerCase().split(", ");
    const grpc = ["x-grpc-web", "grpc-timeout"];
    const names = ["authorization", "content-type", "connect-protocol-version", ...grpc, "x-trace"];
    expect(allowed).toEqual(expect.arrayContaining(names));
    expect(new Set(allowed).size).toBe(allowed?.length);
  });

  test("allows every origin with *, without Vary", () => {
    const fields = toObject(any.preflight({ httpMethod: "OPTIONS", origin: shop, accessControlRequestMethod: "GET" }));
    expect(fields).toMatchObject({ "access-control-allow-origin": "*", "access-control-max-age": "7200" });
    expect(fields).not.toHaveProperty("vary");
  });

  test.each([
    { methods: [], want: "GET, HEAD, POST" },
    { methods: ["PUT", "*"], want: "*" },
  ])("for rules with the methods $methods, allows $want in requests", ({ methods, want }) => {
    const preflight = { httpMethod: "OPTIONS", origin: shop, accessControlRequestMethod: "GET" };
    const fields = createCors({ origins: "*" }, methods).preflight(preflight);
    expect(toObject(fields)).toMatchObject({ "access-control-allow-methods": want });
  });

  test.each([
    "https://evil.example",
    "null",
    "https://shop.example.evil",
    "https://SHOP.example",
    "http://shop.example",
    "",
  ])("for the origin %j allows nothing", (origin) => {
    const fields = listed.preflight({ httpMethod: "OPTIONS", origin, accessControlRequestMethod: "GET" });
    expect(toObject(fields)).toEqual({ vary: "origin" });
  });

  const both = [true, false];
  const requests = both.flatMap((isOptions) =>
    both.flatMap((hasOrigin) => both.map((asksForMethod) => ({ isOptions, hasOrigin, asksForMethod }))),
  );
  test.each(requests)(
    "returns fields only for a preflight (OPTIONS: $isOptions, origin: $hasOrigin, method: $asksForMethod)",
    (request) => {
      const fields = listed.preflight({
        httpMethod: request.isOptions ? "OPTIONS" : "DELETE",
        origin: request.hasOrigin ? shop : null,
        accessControlRequestMethod: request.asksForMethod ? "DELETE" : null,
      });
      expect(fields !== undefined).toBe(request.isOptions && request.hasOrigin && request.asksForMethod);
    },
  );
});

test("Cors.responseFields() exposes the challenge and protocol fields to a listed origin", () => {
  const fields = toObject(listed.responseFields(shop));
  expect(fields).toMatchObject({ "access-control-allow-origin": shop, vary: "origin" });
  const exposed = fields?.["access-control-expose-headers"]?.toLowerCase().split(", ");
  for (const name of ["www-authenticate", "retry-after", "grpc-status", "grpc-message", "x-cost"])
    expect(exposed).toContain(name);
});

test("Cors.responseFields() never allows credentials", () =>
  expect(toObject(any.responseFields(shop))).not.toHaveProperty("access-control-allow-credentials"));

test.each([
  { origin: null, cors: listed, want: { vary: "origin" } },
  { origin: "https://evil.example", cors: listed, want: { vary: "origin" } },
  { origin: null, cors: any, want: {} },
])("Cors.responseFields() for the origin $origin allows nothing", ({ origin, cors, want }) => {
  expect(toObject(cors.responseFields(origin))).toEqual(want);
});
