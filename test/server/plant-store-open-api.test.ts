import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { createPlantStoreOpenApi } from "../../src/server/index.ts";
import { exchangeHttp1 } from "@protoport/testing/http";
import { authorized, startPlantServer } from "../support/server/plant-server.ts";

const document = createPlantStoreOpenApi("https://plants.example/api");

test("openapi.json in the repository describes the default address", () => {
  const committed: unknown = JSON.parse(readFileSync(new URL("../../openapi.json", import.meta.url), "utf8"));
  expect(committed).toEqual(createPlantStoreOpenApi("http://127.0.0.1:8080"));
});

// Compares the complete document, so that nothing can be added to the specification.
test("the OpenAPI document adds only the Idempotency-Key header to the specification", () => {
  const text = expect.any(String);
  expect(document).toEqual({
    openapi: "3.1.0",
    info: {
      title: "Plant Store",
      version: "1.0.0",
      description: text,
      license: { name: "MIT", identifier: "MIT" },
      contact: { name: "Plant Store" },
    },
    servers: [{ url: "https://plants.example/api" }],
    security: [{ bearerAuth: [] }],
    tags: [{ name: "PlantService", description: text }],
    paths: {
      "/plants/{id}": {
        delete: {
          operationId: "deletePlant",
          summary: "Deletes the single plant with the given identifier",
          description: text,
          tags: ["PlantService"],
          parameters: [
            { name: "id", in: "path", required: true, description: text, schema: { type: "integer", format: "int64" } },
            { name: "Idempotency-Key", in: "header", description: text, schema: { type: "string", pattern: text } },
          ],
          // oxfmt-ignore
          responses: {
            "204": { description: "The plant is deleted." },
            "400": { description: "Unexpected error.", content: {
                "application/json": {
                  schema: { $ref: "#/components/schemas/Error" }, example: { error: 5, message: "plant 7 not found" } },
              } },
          },
          "x-rpc": { procedure: "/plantstore.v1.PlantService/DeletePlant", path: "/plants/{id}" },
        },
      },
    },
    components: {
      schemas: {
        Error: {
          type: "object",
          description: text,
          // oxfmt-ignore
          properties: {
            error: { type: "integer", format: "int32", description: text,
              "x-value-names": expect.objectContaining({ "5": "NOT_FOUND", "16": "UNAUTHENTICATED" }) },
            message: { type: "string", description: text },
          },
          required: ["error", "message"],
        },
      },
      securitySchemes: { bearerAuth: { type: "http", scheme: "bearer" } },
    },
  });
});

const docsAccess = [
  { name: "open docs without a credential", open: true, header: [], httpStatus: 200 },
  { name: "closed docs without a credential", open: false, header: [], httpStatus: 400 },
  { name: "closed docs with a credential", open: false, header: [authorized], httpStatus: 200 },
] as const;

test.each(docsAccess)(
  "for $name, the server responds $httpStatus on every documentation path",
  async ({ open, header, httpStatus }) => {
    await using server = await startPlantServer({ docs: open ? "open" : "closed" });
    for (const path of ["/openapi.json", "/docs", "/docs/page.js"]) {
      const response = await exchangeHttp1(server.address, { httpMethod: "GET", path, header: [...header] });
      expect([path, response.httpStatus]).toEqual([path, httpStatus]);
    }
  },
);

test.each([
  { publicUrl: undefined, path: "/openapi.json", want: "/" },
  { publicUrl: "https://plants.example/api/", path: "/api/openapi.json", want: "https://plants.example/api" },
])(
  'the OpenAPI document has the server URL "$want" for the public URL "$publicUrl"',
  async ({ publicUrl, path, want }) => {
    const at = publicUrl === undefined ? {} : { publicUrl: new URL(publicUrl) };
    await using server = await startPlantServer({ docs: "open", ...at });
    const response = await exchangeHttp1(server.address, { httpMethod: "GET", path, header: [] });
    expect(JSON.parse(response.body.toString("utf8"))).toEqual(createPlantStoreOpenApi(want));
  },
);
