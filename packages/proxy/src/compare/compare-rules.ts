import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { Usage } from "./usage.ts";

/** Compares the rules that requests must satisfy. */
export interface CompareRules {
  /** Compares the rules of two fields. */
  ofFields(old: DescField, field: DescField, usage: Usage): void;
  /** Checks the rules on a field that is new. */
  ofNewField(field: DescField, usage: Usage): void;
  /** Compares the rules of two messages and of their oneofs. */
  ofMessages(before: DescMessage, now: DescMessage, usage: Usage): void;
}
