import type { JsonValue } from "@bufbuild/protobuf";

// The OpenAPI 3.1 and 3.2 parts that are used here, with their specifications' names
// (https://spec.openapis.org/oas/v3.1.0.html, section 4.8; https://spec.openapis.org/oas/v3.2.0.html).

/** A JSON Schema in the 2020-12 dialect. */
export type OpenApiSchema = Readonly<Record<string, JsonValue>>;

/** The Info Object: a document's metadata. */
export interface OpenApiInfo {
  readonly title: string;
  /** The interface's version, not OpenAPI's. */
  readonly version: string;
  readonly summary?: string;
  /** CommonMark. */
  readonly description?: string;
  /** `identifier` is an SPDX expression and must not be combined with `url`. */
  readonly license?: { readonly name: string; readonly identifier?: string; readonly url?: string };
  readonly contact?: { readonly name?: string; readonly url?: string; readonly email?: string };
  readonly termsOfService?: string;
}

/** Where the interface is served. A relative URL is relative to the document's location. */
export interface OpenApiServer {
  readonly url: string;
  readonly description?: string;
}

/** The Security Scheme Object: how callers authenticate. */
export type OpenApiSecurityScheme =
  | {
      readonly type: "http";
      /** A scheme (RFC 9110 §16.4.1), such as `bearer`. */
      readonly scheme: string;
      readonly bearerFormat?: string;
      readonly description?: string;
    }
  | {
      readonly type: "apiKey";
      readonly name: string;
      readonly in: "query" | "header" | "cookie";
      readonly description?: string;
    }
  | {
      readonly type: "oauth2";
      readonly flows: Readonly<
        Partial<Record<"authorizationCode" | "clientCredentials" | "implicit" | "password", OpenApiOAuthFlow>>
      >;
      readonly description?: string;
    }
  | { readonly type: "openIdConnect"; readonly openIdConnectUrl: string; readonly description?: string }
  | { readonly type: "mutualTLS"; readonly description?: string };

/** The OAuth Flow Object: where clients obtain tokens, and the scopes that exist. */
export interface OpenApiOAuthFlow {
  readonly authorizationUrl?: string;
  readonly tokenUrl?: string;
  readonly refreshUrl?: string;
  /** The scope descriptions, by name. */
  readonly scopes: Readonly<Record<string, string>>;
}

/** The Security Requirement Object: credentials that a caller needs together, by name, each with its scopes. */
export type OpenApiSecurityRequirement = Readonly<Record<string, readonly string[]>>;

/** An operation parameter. */
export interface OpenApiParameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required?: true;
  readonly deprecated?: true;
  readonly description?: string;
  readonly schema: OpenApiSchema;
  /** Our extension: the JSON names on the path to the field, unless splitting `name` at its dots yields them. */
  readonly "x-field"?: readonly string[];
  /** A map's form: `name[key]=value`. */
  readonly style?: "deepObject";
  readonly explode?: true;
}

/** The Media Type Object: the schema for a body or, since OpenAPI 3.2, for each item in a sequence. */
export interface OpenApiMediaType {
  readonly schema?: OpenApiSchema;
  readonly itemSchema?: OpenApiSchema;
  readonly example?: JsonValue;
}

/** A body, by media type. */
export type OpenApiContent = Readonly<Record<string, OpenApiMediaType>>;

/** The supported OpenAPI versions. */
export type OpenApiVersion = "3.1.0" | "3.2.0";

/** One operation response. */
export interface OpenApiResponse {
  readonly description: string;
  readonly content?: OpenApiContent;
}

/** Our extension `x-rpc`: an operation's RPC, for callers that use gRPC or MCP. */
export interface OpenApiRpc {
  /** `/package.Service/Method`. */
  readonly procedure: string;
  /** The rule's path template, with the fields' JSON names, percent-encoded. */
  readonly path: string;
  /** The field that is the body. `*` for all fields that the path does not set. */
  readonly body?: string;
  /** The tool name. */
  readonly tool?: string;
}

/** The External Documentation Object. */
export interface OpenApiExternalDocs {
  readonly description?: string;
  readonly url: string;
}

/** One path's HTTP method. */
export interface OpenApiOperation {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly externalDocs?: OpenApiExternalDocs;
  readonly tags: readonly string[];
  readonly deprecated?: true;
  readonly parameters?: readonly OpenApiParameter[];
  readonly requestBody?: { readonly required?: true; readonly content: OpenApiContent };
  /** The keys are a status, a range such as `4XX`, or `default`. */
  readonly responses: Readonly<Record<string, OpenApiResponse>>;
  /** The requirements, if they differ from the document's. */
  readonly security?: readonly OpenApiSecurityRequirement[];
  readonly "x-rpc": OpenApiRpc;
}

/** The HTTP methods that are a path item's members. */
export type OpenApiMethod = "get" | "put" | "post" | "delete" | "options" | "head" | "patch" | "trace" | "query";

/** One path's operations. `query` and `additionalOperations` (by HTTP method) require OpenAPI 3.2. */
export interface OpenApiPathItem extends Readonly<Partial<Record<OpenApiMethod, OpenApiOperation>>> {
  readonly additionalOperations?: Readonly<Record<string, OpenApiOperation>>;
}

/** The Tag Object: an operation group, here for a service. */
export interface OpenApiTag {
  readonly name: string;
  readonly description: string;
  readonly externalDocs?: OpenApiExternalDocs;
}

/** An OpenAPI document, ready for `JSON.stringify`. */
export interface OpenApiDocument {
  readonly openapi: OpenApiVersion;
  readonly info: OpenApiInfo;
  readonly servers?: readonly OpenApiServer[];
  readonly security: readonly OpenApiSecurityRequirement[];
  readonly tags: readonly OpenApiTag[];
  readonly paths: Readonly<Record<string, OpenApiPathItem>>;
  readonly components?: {
    readonly schemas?: Readonly<Record<string, OpenApiSchema>>;
    readonly securitySchemes?: Readonly<Record<string, OpenApiSecurityScheme>>;
  };
}
