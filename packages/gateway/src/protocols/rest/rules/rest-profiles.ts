import type { ErrorForm } from "./error-forms.ts";
import type { RestProfile, RestServiceOptions } from "./service-options.ts";

/** The options of a profile. Each is overridden by the user's option of the same name. */
interface ProfileOptions {
  readonly service: Omit<RestServiceOptions, "profile">;
  readonly errors: ErrorForm;
  /** Whether fields with default values are written, like `alwaysEmitImplicit` of `jsonOptions`. */
  readonly alwaysEmitImplicit: boolean;
}

/** The profiles by name. */
export const restProfiles: Readonly<Record<RestProfile, ProfileOptions>> = {
  strict: { service: {}, errors: "status", alwaysEmitImplicit: false },
  google: {
    service: {
      sameValueAsPath: true,
      arrayStreams: true,
      // System parameters of Google's APIs, except access_token, which must not be in a URL.
      ignoredQueryParameters: ["alt", "$alt", "prettyPrint", "$prettyPrint", "key", "$.xgafv", "x-goog-*"],
    },
    errors: "google",
    alwaysEmitImplicit: false,
  },
  "grpc-gateway": {
    service: {
      lenient: true,
      ignoreBodies: true,
      mapsInQuery: true,
      grpcMetadata: true,
      streamInResults: true,
      jsonClientStreams: true,
      updateMaskFromBody: true,
    },
    errors: "status",
    alwaysEmitImplicit: true,
  },
  envoy: {
    service: { lenient: true, ignoreBodies: true, jsonClientStreams: true, arrayStreams: true },
    errors: "status",
    alwaysEmitImplicit: false,
  },
};
