import type { JsonReadOptions, JsonWriteOptions, Registry } from "@bufbuild/protobuf";
import type { CodegenOptions } from "../codegen/index.ts";
import type { NamedOption, OptionNames } from "../../../http/index.ts";
import { jsonDepthMax } from "./json-scanner.ts";

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
  recursionLimit: `JSON may always be nested ${jsonDepthMax} levels deep`,
};

/** Options for reading one service's messages from JSON. */
export interface ReadServiceJsonOptions extends ReadJsonOptions, CodegenOptions {
  /** The option that errors for unknown names mention. Defaults to the option in {@link ReadJsonOptions}. */
  readonly unknownOption?: NamedOption;
}
