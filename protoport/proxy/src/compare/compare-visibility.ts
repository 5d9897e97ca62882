import type { DescEnum, DescMessage } from "@bufbuild/protobuf";
import { visibilityLabelsOf } from "@protoport/gateway/descriptors";
import type { ChangeList } from "./change.ts";
import type { SourceElement } from "./source-line.ts";

/** A part of a definition that can have a `google.api.visibility` rule. */
type Restrictable = Exclude<SourceElement, { readonly kind: "file" }>;

/** Reports an element that is visible to fewer callers than before. */
export function compareVisibility(before: Restrictable, now: Restrictable, subject: string, changes: ChangeList): void {
  const [old, labels] = [visibilityLabelsOf(before.proto), visibilityLabelsOf(now.proto)];
  const hidden = old.filter((label) => !labels.includes(label));
  // An element without a rule is visible to everyone.
  if (labels.length === 0 || (old.length > 0 && hidden.length === 0)) return;
  changes.add("visibility-narrowed", subject, now, {
    change: `google.api.visibility allows only ${labels.join(", ")}`,
    before: `visible to ${old.length === 0 ? "everyone" : old.join(", ")}`,
    now: `does not exist for ${old.length === 0 ? "others" : hidden.join(", ")}`,
  });
}

/** Reports a type that fewer callers see than before. A hidden message also hides the types that it contains. */
export function compareVisibilityOfType<Type extends DescEnum | DescMessage>(
  before: Type,
  now: Type,
  changes: ChangeList,
): void {
  compareVisibility(before, now, before.typeName, changes);
  let old: DescEnum | DescMessage = before;
  for (let outer = now.parent; outer !== undefined; outer = outer.parent) {
    old = old.parent ?? old;
    compareVisibility(old, outer, old.typeName, changes);
  }
}
