/** One HTTP pattern of one RPC, compiled once: turns requests into messages, and response messages into answers. */
import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { BoundFields } from "../../../messages/json/index.ts";
import { createRawFinder, type RawBody } from "./http-body.ts";
import type { HttpPattern } from "./http-rule.ts";
import { parsePathTemplate } from "./parse-path-template.ts";
import type { PathTemplate } from "./path-template.ts";
import { compilePathVariables } from "./path-variables.ts";
import { createRequestReader, type RequestReader } from "./request-reader.ts";
import { createJsonWriter, jsonResponse, prepareResponse, type RestResponse } from "./response-body.ts";
import type { BindingOptions } from "./rest-options.ts";
import type { StreamForms } from "./stream-form.ts";

/** One HTTP pattern of one RPC. */
export interface RestBinding extends RequestReader {
  readonly method: DescMethod;
  /** `/package.Service/Method`. */
  readonly procedure: string;
  readonly pattern: HttpPattern;
  readonly template: PathTemplate;
  /** The fields of the request message that the path sets. */
  readonly boundByPath: BoundFields;
  /** The answer, if it is the same for every message: one whose type has no fields, such as google.protobuf.Empty. */
  readonly preparedResponse: RestResponse | undefined;
  /**
   * Writes the answer.
   *
   * @throws Error when the message cannot be written as JSON, which is the handler's fault
   */
  encode(message: Message): RestResponse;
  /** Finds the google.api.HttpBody that is the answer; `undefined` if answers are JSON. Throws like {@link encode}. */
  readonly toRaw: ((message: Message) => RawBody) | undefined;
  /** Writes a message of a stream as JSON; throws as {@link encode} does. */
  toJson(message: Message): string;
  /** The forms of its streams. */
  readonly streamForms: StreamForms;
  /** Whether fields that are zero are written. */
  readonly emitsImplicit: boolean;
  /** Whether the query may set entries of maps. */
  readonly takesMapsInQuery: boolean;
  /** Whether header fields are named as in grpc-gateway too. */
  readonly usesGrpcMetadata: boolean;
}

/** Returns whether an RPC answers with a stream of messages. */
export function answersStream({ methodKind }: DescMethod): boolean {
  return methodKind === "server_streaming" || methodKind === "bidi_streaming";
}

/**
 * Compiles a pattern of an RPC.
 *
 * @throws Error when the template does not parse, names a field that does not exist or cannot be in a path, or cannot
 * be applied to a stream of messages
 */
export function compileBinding(method: DescMethod, pattern: HttpPattern, options: BindingOptions): RestBinding {
  const { input, output, parent, name } = method;
  const template = parsePathTemplate(pattern.pathTemplate);
  const variables = compilePathVariables(input, template);
  const preparedResponse = prepareResponse(output, pattern.responseBody, options);
  const toRaw = createRawFinder(output, pattern.responseBody);
  const toJson = createJsonWriter(output, pattern.responseBody, options);
  return {
    ...createRequestReader(method, pattern, variables, options),
    method,
    procedure: `/${parent.typeName}/${name}`,
    pattern,
    template,
    boundByPath: variables.boundFields,
    preparedResponse,
    streamForms: options.streamForms,
    emitsImplicit: options.emitsImplicit,
    usesGrpcMetadata: options.grpcMetadata,
    takesMapsInQuery: options.mapsInQuery,
    toJson,
    toRaw,
    encode: (message) => {
      if (toRaw !== undefined) return { httpStatus: 200, ...toRaw(message) };
      return preparedResponse ?? jsonResponse(toJson(message));
    },
  };
}
