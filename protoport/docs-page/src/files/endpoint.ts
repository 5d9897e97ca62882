import { type Operation, titleOf } from "./description.js";
import { element } from "./element.js";

/** Shows an operation's method, and its path with emphasized parameters. Long paths may wrap before a slash. */
export function showEndpoint({ method, path }: Operation): HTMLElement[] {
  const parts = path.split(/(\{[^}]*\})|(?=\/)/).filter((part) => part);
  const pathNodes = parts.flatMap((part) =>
    part.startsWith("{") ? [element("em", {}, part)] : [element("wbr"), part],
  );
  return [
    element("span", { class: `method ${method.toLowerCase()}` }, method),
    element("span", { class: "path" }, ...pathNodes),
  ];
}

/** Shows an operation's title, with a badge if the operation is deprecated. */
export function showTitle(operation: Operation): (Node | string)[] {
  const deprecatedBadge = element("span", { class: "mark deprecated" }, "deprecated");
  return operation.object.deprecated === true ? [titleOf(operation), " ", deprecatedBadge] : [titleOf(operation)];
}
