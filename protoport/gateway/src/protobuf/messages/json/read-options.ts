import {
  createRegistry,
  type DescFile,
  type JsonReadOptions,
  type JsonWriteOptions,
  type Registry,
} from "@bufbuild/protobuf";
import {
  file_google_protobuf_any,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_field_mask,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_wrappers,
} from "@bufbuild/protobuf/wkt";
import type { NamedOption, OptionNames } from "../../../http/index.ts";
import type { CodegenOptions } from "../codegen.ts";
import { maxJsonDepth } from "./json-scanner.ts";

/** Options for reading messages from JSON. */
export interface ReadJsonOptions {
  /** Whether unknown fields and enum names are refused or ignored. Default `"reject"`. */
  readonly unknownFields?: "reject" | "ignore";
  /**
   * Whether integers must be in canonical form, as a string or a number. By default, every exact spelling that the JSON
   * mapping allows is accepted, such as `7`, `"7"`, `7.0` and `1e3`.
   */
  readonly canonicalIntegers?: boolean;
  /** The message types that a google.protobuf.Any may contain. Without a registry, only `{}` is accepted. */
  readonly registry?: Registry;
}

/** All option names in {@link ReadJsonOptions}. */
export const readJsonOptionNames: OptionNames<ReadJsonOptions> = {
  unknownFields: true,
  canonicalIntegers: true,
  registry: true,
};

/** The names of protobuf-es' JSON options, which Connect passes on. */
export const jsonOptionNames: OptionNames<Partial<JsonReadOptions & JsonWriteOptions>> = {
  ignoreUnknownFields: true,
  registry: true,
  recursionLimit: true,
  alwaysEmitImplicit: true,
  enumAsInteger: true,
  useProtoFieldName: true,
};

/** The protobuf-es JSON options that are refused because they would have no effect, each with the reason. */
export const ignoredJsonOptions: Readonly<Record<string, string>> = {
  recursionLimit: `JSON may always be nested ${maxJsonDepth} levels deep`,
};

/** Options for reading one service's messages from JSON. */
export interface ReadServiceJsonOptions extends ReadJsonOptions, CodegenOptions {
  /** The option that errors for unknown names mention. Defaults to the option in {@link ReadJsonOptions}. */
  readonly unknownOption?: NamedOption;
}

/** Returns the types that an Any may contain by default: well-known types, and all types in the files and imports. */
export function createReachableRegistry(defined: Iterable<{ readonly file: DescFile }>): Registry {
  const files = new Set<DescFile>();
  const visitFile = (file: DescFile): void => {
    if (files.has(file)) return;
    files.add(file);
    file.dependencies.forEach(visitFile);
  };
  for (const { file } of defined) visitFile(file);
  return createRegistry(...wellKnown, ...files);
}

const wellKnown: readonly DescFile[] = [
  file_google_protobuf_any,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_field_mask,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_wrappers,
];
