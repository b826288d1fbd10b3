#pragma once

#include <rill/core/chain.hpp>
#include <rill/core/config.hpp>

#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// An owned object of any type, or nothing.
class owned {
  public:
    owned() = default;
    template <class Object>
    explicit owned(Object* made) : object_(made), destroy_(&destroy<Object>) {}
    owned(owned&& other) noexcept : object_(other.object_), destroy_(other.destroy_) { other.object_ = nullptr; }
    owned& operator=(owned other) noexcept {
        std::swap(object_, other.object_);
        std::swap(destroy_, other.destroy_);
        return *this;
    }
    ~owned() {
        if (object_ != nullptr) destroy_(object_);
    }

    void* get() const { return object_; }

  private:
    template <class Object>
    static void destroy(void* object) {
        delete static_cast<Object*>(object);
    }

    void* object_ = nullptr;
    void (*destroy_)(void*) = nullptr;
};

/// Objects of different types, one of each, made on first use.
class workshop {
  public:
    template <class Object>
    Object& get() {
        void* const made = find(&type_tag<Object>);
        return *static_cast<Object*>(made != nullptr ? made : add(&type_tag<Object>, owned(new Object())));
    }

  private:
    struct entry {
        const void* type;
        owned object;
    };
    template <class Object>
    static constexpr char type_tag = 0;

    void* find(const void* type) const {
        for (const entry& each : made_)
            if (each.type == type) return each.object.get();
        return nullptr;
    }
    [[gnu::noinline]] void* add(const void* type, owned object) {
        return made_.add({type, std::move(object)}).object.get();
    }

    chain<entry> made_;
};

}}}  // namespace rill::RILL_ABI::detail
