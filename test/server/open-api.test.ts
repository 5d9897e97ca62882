import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { describePlantStore } from "../../src/server/index.ts";

const document = describePlantStore("https://plants.example/api");

test("openapi.json is the description at the default address", () => {
  const committed: unknown = JSON.parse(readFileSync(new URL("../../openapi.json", import.meta.url), "utf8"));
  expect(committed).toEqual(describePlantStore("http://127.0.0.1:8080"));
});

// The whole of it, so that nothing can stand beside what the specification has.
test("the description says what the specification says, and nothing else", () => {
  const text = expect.any(String);
  expect(document).toEqual({
    openapi: "3.1.0",
    info: {
      title: "Plant Store",
      version: "1.0.0",
      description: text,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "https://plants.example/api" }],
    security: [{ bearerAuth: [] }],
    paths: {
      "/plants/{id}": {
        delete: {
          operationId: "deletePlant",
          summary: "Deletes the single plant with the given identifier",
          description: text,
          parameters: [
            { name: "id", in: "path", required: true, description: text, schema: { type: "integer", format: "int64" } },
          ],
          responses: {
            "204": { description: "The plant is deleted." },
            "400": {
              description: "Unexpected error.",
              content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
            },
          },
        },
      },
    },
    components: {
      schemas: {
        Error: {
          type: "object",
          description: text,
          properties: {
            error: { type: "integer", format: "int32", description: text },
            message: { type: "string", description: text },
          },
          required: ["error", "message"],
        },
      },
      securitySchemes: { bearerAuth: { type: "http", scheme: "bearer" } },
    },
  });
});
