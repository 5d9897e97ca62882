import { type Flag, type ParsedFlags, textsOf } from "@protoport/command-line";

/** The flag `--visibility` for commands that read a definition. */
export const visibilityFlag: Flag = {
  value: "LABEL",
  about: "hides what has a rule of google.api.visibility without LABEL",
  multiple: true,
};

/** Returns the labels that the flag allows, or `undefined` if all elements are visible. */
export function labelsOf({ visibility }: ParsedFlags): readonly string[] | undefined {
  return visibility === undefined ? undefined : textsOf(visibility);
}
