package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// listLarge says how many config maps the default namespace has, and how much they hold.
func listLarge(config *rest.Config, mediaType string) {
	config.ContentType = mediaType
	client, err := coreclient.NewForConfig(config)
	must("a client", err)
	listed, err := client.ConfigMaps(namespace).List(context.Background(), metav1.ListOptions{})
	must("the list", err)
	characters := 0
	for _, one := range listed.Items {
		for _, value := range one.Data {
			characters += len(value)
		}
	}
	fmt.Println(len(listed.Items), characters)
}
