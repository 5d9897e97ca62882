import type { JsonValue } from "@bufbuild/protobuf";

// Types for the OpenAPI 3.1 and 3.2 objects that this package uses, named as in the specifications
// (https://spec.openapis.org/oas/v3.1.0.html, section 4.8; https://spec.openapis.org/oas/v3.2.0.html).

/** A JSON Schema in the 2020-12 dialect. */
export type OpenApiSchema = Readonly<Record<string, JsonValue>>;

/** The Info Object: a document's metadata. */
export interface OpenApiInfo {
  readonly title: string;
  /** The described interface's version, which is not the OpenAPI version. */
  readonly version: string;
  readonly summary?: string;
  /** The description in CommonMark. */
  readonly description?: string;
  /** `identifier` is an SPDX license expression. `identifier` and `url` must not be combined. */
  readonly license?: { readonly name: string; readonly identifier?: string; readonly url?: string };
  readonly contact?: { readonly name?: string; readonly url?: string; readonly email?: string };
  readonly termsOfService?: string;
}

/** A server that serves the interface. A relative URL is relative to the document's location. */
export interface OpenApiServer {
  readonly url: string;
  readonly description?: string;
}

/** The Security Scheme Object, a way for callers to authenticate. */
export type OpenApiSecurityScheme =
  | {
      readonly type: "http";
      /** An authentication scheme (RFC 9110 §16.4.1), such as `bearer`. */
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

/** The OAuth Flow Object, with the URLs for obtaining tokens, and the available scopes. */
interface OpenApiOAuthFlow {
  readonly authorizationUrl?: string;
  readonly tokenUrl?: string;
  readonly refreshUrl?: string;
  /** The scope descriptions, by name. */
  readonly scopes: Readonly<Record<string, string>>;
}

/** The Security Requirement Object. A caller needs all credentials in the object, each with the listed scopes. */
export type OpenApiSecurityRequirement = Readonly<Record<string, readonly string[]>>;

/** An operation parameter. */
export interface OpenApiParameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required?: true;
  readonly deprecated?: true;
  readonly description?: string;
  readonly schema: OpenApiSchema;
  /** Our extension with the JSON names on the path to the field. Omitted if the JSON names equal `name.split(".")`. */
  readonly "x-field"?: readonly string[];
  /** The style of a map parameter, `name[key]=value`. */
  readonly style?: "deepObject";
  readonly explode?: true;
}

/** The Media Type Object, with a schema for a body or, since OpenAPI 3.2, for each item in a sequence. */
export interface OpenApiMediaType {
  readonly schema?: OpenApiSchema;
  readonly itemSchema?: OpenApiSchema;
  readonly example?: JsonValue;
}

/** A request or response body, by media type. */
export type OpenApiContent = Readonly<Record<string, OpenApiMediaType>>;

/** The supported OpenAPI versions. */
export type OpenApiVersion = "3.1.0" | "3.2.0";

/** One operation response. */
export interface OpenApiResponse {
  readonly description: string;
  readonly content?: OpenApiContent;
}

/** Our extension `x-rpc`, which names an operation's RPC for callers that use gRPC or MCP. */
export interface OpenApiRpc {
  /** The RPC's full name, as `/package.Service/Method`. */
  readonly procedure: string;
  /** The HTTP rule's path template. Fields have their JSON names, which are percent-encoded. */
  readonly path: string;
  /** The name of the field that is the body, or `*` for all fields that the path does not set. */
  readonly body?: string;
  /** The name of the AI agent tool. */
  readonly tool?: string;
}

interface OpenApiExternalDocs {
  readonly description?: string;
  readonly url: string;
}

/** The Operation Object, which describes an HTTP method for a path. */
export interface OpenApiOperation {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly externalDocs?: OpenApiExternalDocs;
  readonly tags: readonly string[];
  readonly deprecated?: true;
  readonly parameters?: readonly OpenApiParameter[];
  readonly requestBody?: { readonly required?: true; readonly content: OpenApiContent };
  /** The responses by status. A key is a status, a range such as `4XX`, or `default`. */
  readonly responses: Readonly<Record<string, OpenApiResponse>>;
  /** The security requirements, if they differ from the document's requirements. */
  readonly security?: readonly OpenApiSecurityRequirement[];
  readonly "x-rpc": OpenApiRpc;
}

/** The HTTP methods that are a path item's members. */
export type OpenApiMethod = "get" | "put" | "post" | "delete" | "options" | "head" | "patch" | "trace" | "query";

/** One path's operations. `query` and `additionalOperations`, which has HTTP methods as keys, require OpenAPI 3.2. */
export interface OpenApiPathItem extends Readonly<Partial<Record<OpenApiMethod, OpenApiOperation>>> {
  readonly additionalOperations?: Readonly<Record<string, OpenApiOperation>>;
}

/** The Tag Object, which describes a group of operations, such as a service. */
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
