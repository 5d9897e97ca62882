import type { DescField } from "@bufbuild/protobuf";
import type { FieldPath } from "../rest/field-path.ts";
import type { FieldsElsewhere } from "./schemas.ts";

/** Sorts field paths into a tree: which fields of a message are bound by them, whole or in part. */
export function toFieldsElsewhere(paths: readonly FieldPath[]): FieldsElsewhere {
  const tree = new Map<DescField, "whole" | FieldsElsewhere>();
  for (const [first, group] of Map.groupBy(paths, (path) => path[0])) {
    const deeper = group.flatMap(([, second, ...rest]): FieldPath[] => (second ? [[second, ...rest]] : []));
    tree.set(first, deeper.length < group.length ? "whole" : toFieldsElsewhere(deeper));
  }
  return tree;
}
