import { visibilityLabelsOf } from "@plantstore/protobuf";
import type { ChangeList } from "./change.ts";
import type { Place } from "./source-line.ts";

/** A definition part that can have a `google.api.visibility` rule. */
type Restrictable = Exclude<Place, { readonly kind: "file" }>;

/** Reports whether fewer callers see an element than before. */
export function compareVisibility(before: Restrictable, now: Restrictable, subject: string, changes: ChangeList): void {
  const [old, labels] = [visibilityLabelsOf(before.proto), visibilityLabelsOf(now.proto)];
  const hidden = old.filter((label) => !labels.includes(label));
  // Without a rule, everyone sees an element.
  if (labels.length === 0 || (old.length > 0 && hidden.length === 0)) return;
  changes.add("visibility-narrowed", subject, now, {
    change: `google.api.visibility allows only ${labels.join(", ")}`,
    before: `visible to ${old.length === 0 ? "everyone" : old.join(", ")}`,
    now: `does not exist for ${old.length === 0 ? "others" : hidden.join(", ")}`,
  });
}
