import type { JsonReadOptions, JsonWriteOptions, Registry } from "@bufbuild/protobuf";
import type { CodegenOptions } from "../codegen/index.ts";
import type { NamedOption, OptionNames } from "@plantstore/http";
import { jsonDepthMax } from "./json-scanner.ts";

/** How JSON is read. */
export interface ReadJsonOptions {
  /** Whether fields and enum names that are not defined are an error or ignored. Default `"reject"`. */
  readonly unknownFields?: "reject" | "ignore";
  /**
   * Requires integers in canonical form, as a string or a number. By default every exact spelling that the JSON mapping
   * allows is accepted: `7`, `"7"`, `7.0`, `1e3`.
   */
  readonly canonicalIntegers?: boolean;
  /** The message types that a google.protobuf.Any may contain. Without it only the empty Any, `{}`, is accepted. */
  readonly registry?: Registry;
}

/** All names in {@link ReadJsonOptions}. */
export const readJsonOptionNames: OptionNames<ReadJsonOptions> = {
  unknownFields: true,
  canonicalIntegers: true,
  registry: true,
};

/** The names that protobuf-es' JSON options have, as Connect passes them on. */
export const jsonOptionNames: OptionNames<Partial<JsonReadOptions & JsonWriteOptions>> = {
  ignoreUnknownFields: true,
  registry: true,
  recursionLimit: true,
  alwaysEmitImplicit: true,
  enumAsInteger: true,
  useProtoFieldName: true,
};

/** protobuf-es' JSON options that are refused because they would have no effect, and why. */
export const ignoredJsonOptions: Readonly<Record<string, string>> = {
  recursionLimit: `JSON may always be nested ${jsonDepthMax} levels deep`,
};

/** One service's options. */
export interface ReadServiceJsonOptions extends ReadJsonOptions, CodegenOptions {
  /**
   * The option to name when an unknown field or enum name is refused. Defaults to the one in {@link ReadJsonOptions}.
   */
  readonly unknownOption?: NamedOption;
}
