import type { Operation, Parameter } from "./description.js";

/** The values that the user has entered in the form. */
export interface Input {
  /** The parameter values, by location and name, such as `path id`. */
  readonly values: ReadonlyMap<string, string>;
  readonly accept: string | undefined;
  readonly body: string | File | undefined;
  readonly contentType: string | undefined;
}

/** Returns the parameters in `path`, `query` or `header` that were filled in. */
export function filledIn(
  { object }: Operation,
  { values }: Input,
  place: string,
): (Parameter & { readonly value: string })[] {
  return (object.parameters ?? []).flatMap((parameter) => {
    const value = parameter.in === place ? (values.get(`${place} ${parameter.name}`) ?? "") : "";
    return value === "" ? [] : [{ ...parameter, value }];
  });
}
