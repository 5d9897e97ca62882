import { matcherOf } from "@protoport/gateway/options";

/** A group of response fields with the same purpose. A name that ends in `*` is a prefix. */
interface ControlFields {
  /** The fields' purpose, as in the documentation. */
  readonly controls: string;
  readonly names: readonly string[];
}

/**
 * The response fields that control more than their upstream's response. A listed field is forwarded only if `allow`
 * contains its exact name. The table "Fields that control more than a response" in
 * protoport/docs/reference/proxy-configuration.md shows this list.
 */
export const controlFields: readonly ControlFields[] = [
  { controls: "status and redirects on REST", names: ["Status", "Location", "Refresh"] },
  {
    controls: "how browsers run the response",
    names: ["Content-Security-Policy", "Content-Security-Policy-Report-Only", "X-Frame-Options"],
  },
  {
    controls: "what browsers load or use besides",
    names: ["Link", "Speculation-Rules", "Use-As-Dictionary"],
  },
  {
    controls: "what browsers keep for the origin",
    names: [
      "Accept-CH",
      "Clear-Site-Data",
      "Critical-CH",
      "NEL",
      "Report-To",
      "Reporting-Endpoints",
      "Service-Worker-Allowed",
      "Set-Login",
      "Strict-Transport-Security",
    ],
  },
  {
    controls: "servers in front, which may send a file",
    names: ["X-Accel-*", "X-Lighttpd-Send-File", "X-Sendfile", "X-Reproxy-URL"],
  },
];

/** Returns whether a response field controls more than its response, by its name in lower case. */
export const isControlField: (name: string) => boolean = matcherOf(
  controlFields.flatMap(({ names }) => names.map((name) => name.toLowerCase())),
);
