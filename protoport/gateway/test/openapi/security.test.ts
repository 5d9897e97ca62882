import { expect, test } from "vitest";
import { createOpenApi, type OpenApiOptions } from "../../src/openapi/create-open-api.ts";
import { LibraryService } from "../../../testing/src/gen/library/v1/library_pb.ts";

const securitySchemes: OpenApiOptions["securitySchemes"] = {
  bearer: { type: "http", scheme: "bearer" },
  key: { type: "apiKey", in: "header", name: "x-key" },
};

/** Returns the requirements for the document and for each operation, or `undefined` if the document's apply. */
function requirementsOf(options: Partial<OpenApiOptions>): object {
  const given: OpenApiOptions = { info: { title: "t", version: "1" }, operationIds: "rpc", ...options };
  const { security, paths } = createOpenApi([LibraryService], given);
  const operations = Object.values(paths).flatMap((item) => Object.values(item));
  return {
    document: security,
    operations: Object.fromEntries(
      operations.flatMap(({ operationId, security: own }) => (own ? [[operationId, own]] : [])),
    ),
  };
}

test.each<{ name: string; options: Partial<OpenApiOptions>; want: object }>(
  // oxfmt-ignore
  [
      { name: "is empty without securitySchemes", options: {}, want: { document: [], operations: {} } },
      { name: "requires all credentials by default", options: { securitySchemes },
        want: { document: [{ bearer: [], key: [] }], operations: {} } },
      { name: "contains the alternatives from the option security",
        options: { securitySchemes, security: [{ bearer: ["orders"] }, { key: [] }, {}] },
        want: { document: [{ bearer: ["orders"] }, { key: [] }, {}], operations: {} } },
      { name: "contains an empty array for a public RPC",
        options: { securitySchemes, security: [{ bearer: [] }], describeSecurity: ({ name }) =>
            name === "GetBook" ? [] : name === "CreateBook" ? [{ bearer: ["books:create"] }] : undefined },
        want: { document: [{ bearer: [] }], operations: { getBook: [], createBook: [{ bearer: ["books:create"] }] } } },
      { name: "is not repeated for an operation with the same requirement",
        options: { securitySchemes, security: [{ bearer: [] }], describeSecurity: () => [{ bearer: [] }] },
        want: { document: [{ bearer: [] }], operations: {} } },
    ],
)("the security of a document $name", ({ options, want }) => expect(requirementsOf(options)).toEqual(want));

test.each<{ name: string; options: Partial<OpenApiOptions>; message: string }>([
  {
    name: "for the document",
    options: { securitySchemes, security: [{ baerer: [] }] },
    message: 'security of createOpenApi: "baerer" is not a name of securitySchemes; did you mean "bearer"?',
  },
  {
    name: "for an RPC",
    options: { securitySchemes, describeSecurity: () => [{ oauth: [] }] },
    message: '"oauth" is not a name of securitySchemes; accepted are bearer, key',
  },
])("the security of a document is refused if the requirement $name names an unknown scheme", ({ options, message }) => {
  expect(() => requirementsOf(options)).toThrow(message);
});
