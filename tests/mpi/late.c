/* Runs the main function of a shared object that no other object sees: late OBJECT [ARGUMENT..] */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    void *object = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    int (*begin)(int, char **) = object ? (int (*)(int, char **))dlsym(object, "main") : NULL;
    if (!begin) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    return begin(argc - 1, argv + 1);
}
