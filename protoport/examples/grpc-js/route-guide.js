// The handlers of the route guide, for grpc-js. They do not know which server calls them.

const features = [
  { name: "Palm house", location: { latitude: 485_000_000, longitude: 20_000_000 } },
  { name: "Rose garden", location: { latitude: 485_100_000, longitude: 20_200_000 } },
  { name: "Arboretum", location: { latitude: 486_500_000, longitude: 21_000_000 } },
];

/** The notes of all chats, by their places. */
const notesByPlace = new Map();

export const routeGuide = {
  getFeature({ request }, callback) {
    callback(null, featureAt(request));
  },

  listFeatures(call) {
    const { lo, hi } = call.request;
    for (const feature of features) if (isBetween(feature.location, lo, hi)) call.write(feature);
    call.end();
  },

  recordRoute(call, callback) {
    const started = performance.now();
    const points = [];
    call.on("data", (point) => points.push(point));
    call.on("end", () => {
      callback(null, {
        point_count: points.length,
        feature_count: points.filter((point) => featureAt(point).name !== "").length,
        distance: Math.round(points.slice(1).reduce((sum, point, at) => sum + metersBetween(points[at], point), 0)),
        elapsed_time: Math.floor((performance.now() - started) / 1000),
      });
    });
  },

  routeChat(call) {
    call.on("data", (note) => {
      const place = placeOf(note.location);
      const notes = notesByPlace.get(place) ?? [];
      for (const earlier of notes) call.write(earlier);
      notesByPlace.set(place, [...notes, note]);
    });
    call.on("end", () => call.end());
  },
};

function featureAt(location) {
  const place = placeOf(location);
  return features.find((feature) => placeOf(feature.location) === place) ?? { name: "", location };
}

function placeOf({ latitude, longitude }) {
  return `${latitude} ${longitude}`;
}

function isBetween({ latitude, longitude }, lo, hi) {
  return (
    latitude >= Math.min(lo.latitude, hi.latitude) &&
    latitude <= Math.max(lo.latitude, hi.latitude) &&
    longitude >= Math.min(lo.longitude, hi.longitude) &&
    longitude <= Math.max(lo.longitude, hi.longitude)
  );
}

/** The length of the arc between two points, by the spherical law of cosines. */
function metersBetween(from, to) {
  const [south, north] = [radians(from.latitude), radians(to.latitude)];
  const cosine =
    Math.sin(south) * Math.sin(north) +
    Math.cos(south) * Math.cos(north) * Math.cos(radians(to.longitude) - radians(from.longitude));
  return Math.acos(Math.min(1, cosine)) * 6_371_000;
}

function radians(degrees) {
  return (degrees / 1e7 / 180) * Math.PI;
}
