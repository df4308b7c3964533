/**
 * AlwaysPullImages: nobody runs an image that somebody else's secret brought to the node. Off
 * unless enabled.
 */
import {
  aggregate,
  fieldErrorText,
  notSupported,
  type FieldError,
} from '@megaplane/machinery/fielderrors';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject } from '@megaplane/machinery/json-value';
import { unclassified } from '@megaplane/machinery/status';
import { refuse } from '../../registry/rest/refusal.ts';
import type { Admitted } from '../../registry/rest/admitted.ts';
import type { AdmissionPlugin } from '../admission-plugin.ts';

const ALWAYS = 'Always';
/** In the order in which upstream visits them. */
const CONTAINERS = ['initContainers', 'containers', 'ephemeralContainers'] as const;

function containersOf(object: JsonObject | null): { at: string; container: JsonObject }[] {
  return CONTAINERS.flatMap((field) =>
    listAt(object, 'spec', field).flatMap((container, index) =>
      isObject(container) ? [{ at: `spec.${field}[${index}]`, container }] : [],
    ),
  );
}

/** Volumes that are images, with their paths. */
function imageVolumesOf(object: JsonObject | null): { at: string; image: JsonObject }[] {
  return listAt(object, 'spec', 'volumes').flatMap((volume, index) => {
    const image = objectAt(volume, 'image');
    return image === undefined ? [] : [{ at: `spec.volumes[${index}].image`, image }];
  });
}

/** An update that brings no new image is left as it is. */
function isOld({ operation, object, previous }: Admitted): boolean {
  if (operation !== 'UPDATE') return false;
  const before = new Set(containersOf(previous).map(({ container }) => container['image']));
  return containersOf(object).every(({ container }) => before.has(container['image']));
}

export const alwaysPullImages: AdmissionPlugin = {
  name: 'AlwaysPullImages',
  repeats: () => true,
  handles: ({ resource }, operation, subresource) =>
    resource.storage.name === 'pods' &&
    (operation === 'CREATE' || operation === 'UPDATE') &&
    subresource === '',
  mutate: (write) => {
    if (isOld(write)) return null;
    for (const { container } of containersOf(write.object)) container['imagePullPolicy'] = ALWAYS;
    for (const { image } of imageVolumesOf(write.object)) image['pullPolicy'] = ALWAYS;
    return null;
  },
  validate: (write) => {
    if (isOld(write)) return null;
    const found: FieldError[] = [];
    const check = (path: string, policy: string): void => {
      if (policy !== ALWAYS) found.push(notSupported(path, policy, [ALWAYS]));
    };
    for (const { at, container } of containersOf(write.object)) {
      check(`${at}.imagePullPolicy`, stringAt(container, 'imagePullPolicy'));
    }
    for (const { at, image } of imageVolumesOf(write.object)) {
      check(`${at}.pullPolicy`, stringAt(image, 'pullPolicy'));
    }
    // upstream gives a list of errors, which has no reason of its own
    const texts = found.map((one) => refuse(write, fieldErrorText(one)).message ?? '');
    return texts.length === 0 ? null : unclassified(aggregate(texts));
  },
};
