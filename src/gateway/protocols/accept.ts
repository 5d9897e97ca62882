/** An item of an `Accept*` list. */
export interface AcceptItem {
  /** A media range or a coding, in lower case. */
  readonly name: string;
  /** What follows the name, such as `version=1.0.0`, in lower case; the weight is among them. */
  readonly parameters: readonly string[];
  /** From 0, which is not acceptable, to 1, which is also meant where there is none. */
  readonly weight: number;
}

// RFC 9110 §12.4.2: a weight from 0 to 1 with at most three digits of fraction.
const weightSyntax = /^q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)$/;

/** How many items of a list are read: more than there are codings, and few enough to cost nothing. */
export const acceptItemsMax = 16;

/** How many characters of a list are read: several times what browsers send, and few enough to cost nothing. */
const acceptLengthMax = 1024;

/** How many parameters of an item are read, the weight among them. */
const parametersMax = 8;

/**
 * Reads the list of an `Accept` or `Accept-Encoding` field, or of one of the RPC protocols that is like them (RFC 9110
 * §12.4.2). Items whose weight is malformed are left out.
 */
export function readAccept(list: string): readonly AcceptItem[] {
  const items: AcceptItem[] = [];
  for (const item of list.slice(0, acceptLengthMax).toLowerCase().split(",", acceptItemsMax)) {
    const [name = "", ...parameters] = item.split(";", 1 + parametersMax).map((part) => part.trim());
    const q = parameters.find((parameter) => parameter.startsWith("q=")) ?? "q=1";
    const weight = weightSyntax.exec(q)?.[1];
    if (name !== "" && weight !== undefined) items.push({ name, parameters, weight: Number(weight) });
  }
  return items;
}
