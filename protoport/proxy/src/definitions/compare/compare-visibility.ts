import type { DescEnum, DescMessage } from "@bufbuild/protobuf";
import { visibilityLabelsOf } from "@protoport/gateway/descriptors";
import type { ChangeList } from "./change.ts";
import type { SourceElement } from "./source-line.ts";

/** A part of a definition that can have a `google.api.visibility` rule. */
type RestrictableElement = Exclude<SourceElement, { readonly kind: "file" }>;

/** The counterpart of an element that the new definition does not have, or that `--visibility` has removed from it. */
interface Missing {
  /** The element whose line a report shows. */
  readonly missingIn: SourceElement;
}

/** Reports an element that is visible to fewer callers than before, or missing. */
export function compareVisibility(
  before: RestrictableElement,
  now: RestrictableElement | Missing,
  subject: string,
  changes: ChangeList,
): void {
  if ("missingIn" in now) {
    changes.add("element-hidden", subject, now.missingIn, {
      change: "the element is hidden or removed",
      before: "visible to callers with these labels",
      now: "does not exist for them",
    });
    return;
  }
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
