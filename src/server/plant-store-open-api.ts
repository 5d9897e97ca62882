import type { DescMethod } from "@bufbuild/protobuf";
import { createOpenApi, type OpenApiDocument, type OpenApiOptions } from "@protoport/gateway/openapi";
import { comments } from "../gen/comments.ts";
import { ErrorSchema, PlantService } from "../gen/es/plantstore/v1/plant_service_pb.ts";
import { idempotencyKeyField, idempotencyKeyPattern, policyOf, restOptions } from "../service/index.ts";

/**
 * Describes the plant store's REST interface, version 1.0.0, as an OpenAPI 3.1 document.
 *
 * @param baseUrl - the base URL for all paths. The URL is absolute, or relative to the document
 * @param mcp - the names of the tools. Set if AI agents may call the RPCs
 */
export function createPlantStoreOpenApi(baseUrl: string, mcp?: OpenApiOptions["mcp"]): OpenApiDocument {
  return createOpenApi([PlantService], {
    info: {
      title: "Plant Store",
      version: "1.0.0",
      license: { name: "MIT", identifier: "MIT" },
      contact: { name: "Plant Store" },
    },
    servers: [{ url: baseUrl }],
    securitySchemes: { bearerAuth: { type: "http", scheme: "bearer" } },
    comments,
    rest: restOptions,
    operationIds: "rpc",
    ...(mcp && { mcp }),
    errors: [
      {
        status: "400",
        description: "Unexpected error.",
        record: ErrorSchema,
        codeField: ErrorSchema.field.error.name,
        example: { error: 5, message: "plant 7 not found" },
      },
    ],
    describeHeader: (method) => (policyOf(procedureOf(method))?.effect === "deletion" ? [idempotencyKey] : []),
    describeSuccess: (method) => policyOf(procedureOf(method))?.successDescription,
  });
}

// Has no example, because Postman would send the example's key with every request.
const idempotencyKey = {
  name: idempotencyKeyField,
  description:
    "Makes retries safe: while the deletion record is kept, a request with the same key, plant and subject gets the " +
    "response of the first one, and any other request with the key is refused. Keys are separate for each token issuer. " +
    'A structured-field string in double quotes, such as `"8e03978e-40d5-43e8-bc93-6894a57f9324"`.',
  schema: { type: "string", pattern: idempotencyKeyPattern },
} as const;

function procedureOf({ parent, name }: DescMethod): string {
  return `/${parent.typeName}/${name}`;
}
