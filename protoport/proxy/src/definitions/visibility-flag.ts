import { type Flag, type ParsedFlags, textsOf } from "@protoport/command-line";
import type { VisibilityOptions } from "@protoport/gateway/descriptors";

/** The flag `--visibility` for commands that read a definition. */
export const visibilityFlag: Flag = {
  value: "LABEL",
  about: "hides what has a rule of google.api.visibility without LABEL",
  multiple: true,
};

/** Returns what the flag makes visible, or `undefined` if all elements are visible. */
export function visibilityOf({ visibility }: ParsedFlags): VisibilityOptions | undefined {
  return visibility === undefined ? undefined : { allow: textsOf(visibility) };
}
